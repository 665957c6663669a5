// One `up` at a time for a state directory.
import { existsSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { StandaloneError } from './error.ts'
import { readJson, writeFileAtomic } from './files.ts'
import { identifyProcess, isRunning, type ProcessId } from './node/processes.ts'
import { isRootless } from './rootless.ts'

export type Progress = 'starting' | 'running' | 'stopping' | 'failed'

interface ProgressRecord {
  readonly progress: Progress
  readonly message?: string
}

interface UpId extends ProcessId {
  /** Without root: the process outside, which ends some moments after the one inside. */
  readonly outer?: ProcessId
}

export interface UpRecord extends UpId, ProgressRecord {}

/** Which process it is: written once, so that once deleted it stays away. */
const upFile = (stateDir: string) => join(stateDir, 'up.json')
/** How far that process is: written at each step. */
const progressFile = (stateDir: string) => join(stateDir, 'progress.json')

export async function readUpRecord(stateDir: string): Promise<UpRecord | undefined> {
  const id = await readJson<UpId>(upFile(stateDir))
  if (id === undefined) return undefined
  const progress = await readJson<ProgressRecord>(progressFile(stateDir))
  return { ...id, progress: 'starting', ...progress }
}

/**
 * Makes this process the only one with a name on this machine until it is disposed or the process ends, however that
 * happens: the kernel takes the name back. Resolves undefined when another process has it.
 */
export async function holdName(name: string): Promise<AsyncDisposable | undefined> {
  const { promise, resolve, reject } = Promise.withResolvers<boolean>()
  const server = createServer((socket) => socket.destroy())
  server.once('error', (error: NodeJS.ErrnoException) => (error.code === 'EADDRINUSE' ? resolve(false) : reject(error)))
  server.listen({ path: `\0${name}` }, () => resolve(true))
  if (!(await promise)) return undefined
  server.unref()
  return {
    async [Symbol.asyncDispose]() {
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

const retryMs = 50

/** Waits for the name. */
export async function waitForName(name: string, signal: AbortSignal): Promise<AsyncDisposable> {
  for (;;) {
    signal.throwIfAborted()
    const held = await holdName(name)
    if (held !== undefined) return held
    await new Promise((resolve) => setTimeout(resolve, retryMs))
  }
}

/** The running `up` of the state directory, if there is one. */
export async function runningUp(stateDir: string): Promise<UpRecord | undefined> {
  const record = await readUpRecord(stateDir)
  return record !== undefined && isRunning(record) ? record : undefined
}

/** Writes that this process begins, before `watchRemoval`. */
export async function writeUpRecord(stateDir: string): Promise<void> {
  const id = identifyProcess(process.pid)
  if (id === undefined) return
  await writeProgress(stateDir, 'starting')
  const outer = isRootless() && process.ppid !== 1 ? identifyProcess(process.ppid) : undefined
  const record: UpId = { ...id, ...(outer && { outer }) }
  await writeFileAtomic(upFile(stateDir), JSON.stringify(record))
}

export async function writeProgress(stateDir: string, progress: Progress, message?: string): Promise<void> {
  const record: ProgressRecord = { progress, ...(message && { message }) }
  await writeFileAtomic(progressFile(stateDir), JSON.stringify(record))
}

const lookMs = 500

export interface Removal extends Disposable {
  readonly signal: AbortSignal
  /** Looks now. */
  look(): void
}

/** Aborts when the record of this `up` is deleted, as by one who removes the state directory by hand. */
export function watchRemoval(stateDir: string): Removal {
  const removed = new AbortController()
  const look = () => {
    if (removed.signal.aborted || existsSync(upFile(stateDir))) return
    removed.abort(
      new StandaloneError('STATE_REMOVED', `${stateDir} was removed while the mesh ran in it: everything is ended`),
    )
  }
  const timer = setInterval(look, lookMs)
  timer.unref()
  return { signal: removed.signal, look, [Symbol.dispose]: () => clearInterval(timer) }
}
