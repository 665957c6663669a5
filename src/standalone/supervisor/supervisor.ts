// Starts the processes of an instance, starts them again when they end, and keeps a record by which a later instance finds them.
import { spawn } from 'node:child_process'
import { closeSync, openSync, renameSync, statSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { readJson, writeFileAtomic } from '../files.ts'
import { endProcess, identifyProcess, type ProcessId } from '../node/processes.ts'

export interface ProcessSpec {
  readonly name: string
  readonly argv: readonly string[]
}

export interface ProcessRecord extends ProcessId {
  readonly name: string
  readonly startedAt: string
  readonly restarts: number
}

const firstDelayMs = 100
const longestDelayMs = 5000
const goodRunMs = 10_000
const largestLogBytes = 20 * 1024 * 1024

export class Supervisor implements AsyncDisposable {
  readonly #stateDir: string
  readonly #note: (message: string) => void
  readonly #records = new Map<string, ProcessRecord>()
  readonly #timers = new Set<NodeJS.Timeout>()
  #stopping = false
  #writing: Promise<void> = Promise.resolve()

  constructor(stateDir: string, note: (message: string) => void) {
    this.#stateDir = stateDir
    this.#note = note
  }

  get records(): ProcessRecord[] {
    return [...this.#records.values()]
  }

  logFile(name: string): string {
    return join(this.#stateDir, 'logs', `${name}.log`)
  }

  async start(spec: ProcessSpec): Promise<void> {
    await mkdir(join(this.#stateDir, 'logs'), { recursive: true })
    await this.#run(spec, 0, firstDelayMs)
  }

  async #run(spec: ProcessSpec, restarts: number, delayMs: number): Promise<void> {
    const path = this.logFile(spec.name)
    rotate(path)
    const log = openSync(path, 'a', 0o640)
    const [file = '', ...args] = spec.argv
    const startedAtMs = Date.now()
    const child = spawn(file, args, { detached: true, stdio: ['ignore', log, log] })
    closeSync(log)
    child.on('error', (error) => this.#note(`${spec.name} could not be started: ${error.message}`))
    child.once('exit', (code, signal) => {
      this.#records.delete(spec.name)
      if (this.#stopping) return
      const lasted = Date.now() - startedAtMs
      const wait = lasted >= goodRunMs ? firstDelayMs : delayMs
      this.#note(`${spec.name} ended (${signal ?? `code ${code}`}), starting it again`)
      const timer = setTimeout(() => {
        this.#timers.delete(timer)
        void this.#run(spec, restarts + 1, Math.min(wait * 2, longestDelayMs))
      }, wait)
      this.#timers.add(timer)
    })
    const id = identifyProcess(child.pid ?? 0)
    if (id !== undefined) {
      this.#records.set(spec.name, { ...id, name: spec.name, startedAt: new Date(startedAtMs).toISOString(), restarts })
    }
    this.#writing = this.#writing.then(() => writeFileAtomic(recordFile(this.#stateDir), JSON.stringify(this.records)))
    await this.#writing
  }

  /** Ends the named processes, or all in reverse order of their start. */
  async stop(graceMs = 10_000): Promise<void> {
    this.#stopping = true
    for (const timer of this.#timers) clearTimeout(timer)
    for (const record of this.records.reverse()) await endProcess(record, graceMs)
    await this.#writing
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
  }
}

function recordFile(stateDir: string): string {
  return join(stateDir, 'processes.json')
}

/** The processes an instance recorded, running or not. */
export async function recordedProcesses(stateDir: string): Promise<ProcessRecord[]> {
  return (await readJson<ProcessRecord[]>(recordFile(stateDir))) ?? []
}

function rotate(path: string): void {
  const size = statSync(path, { throwIfNoEntry: false })?.size ?? 0
  if (size > largestLogBytes) renameSync(path, `${path}.1`)
}
