// Starts the processes of an instance, starts them again when they end, and keeps a record by which a later instance finds them.
import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, mkdirSync, openSync, renameSync, statSync } from 'node:fs'
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

export interface SupervisorOptions {
  readonly stateDir: string
  /** Added to the environment of every process. */
  readonly environment: Readonly<Record<string, string>>
  readonly note: (message: string) => void
}

const firstDelayMs = 100
const longestDelayMs = 5000
const goodRunMs = 10_000
const largestLogBytes = 20 * 1024 * 1024

export class Supervisor implements AsyncDisposable {
  readonly #options: SupervisorOptions
  readonly #records = new Map<string, ProcessRecord>()
  readonly #restarts = new Map<string, number>()
  readonly #timers = new Set<NodeJS.Timeout>()
  #stopping = false
  #writing: Promise<void> = Promise.resolve()

  constructor(options: SupervisorOptions) {
    this.#options = options
  }

  get records(): ProcessRecord[] {
    return [...this.#records.values()]
  }

  /** How often the process was started again. */
  restarts(name: string): number {
    return this.#restarts.get(name) ?? 0
  }

  logFile(name: string): string {
    return join(this.#options.stateDir, 'logs', `${name}.log`)
  }

  /** Resolves when the process is started and recorded. What fails later is noted and tried again. */
  async start(spec: ProcessSpec): Promise<void> {
    this.#run(spec, 0, firstDelayMs)
    await this.#writing
  }

  #run(spec: ProcessSpec, restarts: number, delayMs: number): void {
    this.#restarts.set(spec.name, restarts)
    const startedAtMs = Date.now()
    let ended = false
    const again = (why: string) => {
      if (ended) return
      ended = true
      this.#records.delete(spec.name)
      if (this.#stopping) return
      const wait = Date.now() - startedAtMs >= goodRunMs ? firstDelayMs : delayMs
      this.#options.note(`${spec.name} ${why}, starting it again`)
      const timer = setTimeout(() => {
        this.#timers.delete(timer)
        this.#run(spec, restarts + 1, Math.min(wait * 2, longestDelayMs))
      }, wait)
      this.#timers.add(timer)
    }
    let child: ChildProcess
    try {
      child = this.#spawn(spec)
    } catch (error) {
      again(`could not be started (${(error as Error).message})`)
      return
    }
    child.once('error', (error) => again(`could not be started (${error.message})`))
    child.once('exit', (code, signal) => again(`ended (${signal ?? `code ${code}`})`))
    const id = identifyProcess(child.pid ?? 0)
    if (id === undefined) return
    this.#records.set(spec.name, { ...id, name: spec.name, startedAt: new Date(startedAtMs).toISOString(), restarts })
    this.#writing = this.#writing
      .then(() => writeFileAtomic(recordFile(this.#options.stateDir), JSON.stringify(this.records)))
      .catch((error: Error) => this.#options.note(`processes could not be recorded: ${error.message}`))
  }

  #spawn({ name, argv }: ProcessSpec): ChildProcess {
    const path = this.logFile(name)
    mkdirSync(join(this.#options.stateDir, 'logs'), { recursive: true })
    rotate(path)
    const log = openSync(path, 'a', 0o640)
    try {
      const [file = '', ...args] = argv
      const env = { ...process.env, ...this.#options.environment }
      return spawn(file, args, { detached: true, stdio: ['ignore', log, log], env })
    } finally {
      closeSync(log)
    }
  }

  /** Ends all in reverse order of their start. */
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
