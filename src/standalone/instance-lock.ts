// One `up` at a time for a state directory.
import { join } from 'node:path'
import { readJson, writeFileAtomic } from './files.ts'
import { identifyProcess, isRunning, type ProcessId } from './node/processes.ts'

export type Progress = 'starting' | 'running' | 'stopping' | 'failed'

export interface UpRecord extends ProcessId {
  readonly progress: Progress
  readonly message?: string
}

export async function readUpRecord(stateDir: string): Promise<UpRecord | undefined> {
  return readJson<UpRecord>(join(stateDir, 'up.json'))
}

/** The running `up` of the state directory, if there is one. */
export async function runningUp(stateDir: string): Promise<UpRecord | undefined> {
  const record = await readUpRecord(stateDir)
  return record !== undefined && isRunning(record) ? record : undefined
}

export async function writeUpRecord(stateDir: string, progress: Progress, message?: string): Promise<void> {
  const id = identifyProcess(process.pid)
  if (id === undefined) return
  await writeFileAtomic(join(stateDir, 'up.json'), JSON.stringify({ ...id, progress, ...(message && { message }) }))
}
