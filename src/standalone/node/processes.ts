// Processes by pid and start time, so that a reused pid is never taken for the old process.
import { readFileSync } from 'node:fs'

export interface ProcessId {
  readonly pid: number
  /** Clock ticks since boot, field 22 of /proc/<pid>/stat. */
  readonly startTicks: string
}

/** The identity of a running process; undefined when there is none (a zombie counts as none). */
export function identifyProcess(pid: number): ProcessId | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    if (fields[0] === 'Z' || fields[0] === 'X') return undefined
    return { pid, startTicks: fields[19] ?? '' }
  } catch {
    return undefined
  }
}

export function isRunning(id: ProcessId): boolean {
  return identifyProcess(id.pid)?.startTicks === id.startTicks
}

/** Sends a signal if that very process still runs. */
export function signalProcess(id: ProcessId, signal: NodeJS.Signals): boolean {
  if (!isRunning(id)) return false
  try {
    process.kill(id.pid, signal)
    return true
  } catch {
    return false
  }
}

/** Resolves when the process has ended, or after that time. */
export async function waitForEnd(id: ProcessId, withinMs: number): Promise<void> {
  const deadline = Date.now() + withinMs
  while (isRunning(id) && Date.now() < deadline) await pause()
}

const pause = () => new Promise((resolve) => setTimeout(resolve, 20))

/** Ends a process: `first` (default SIGTERM), SIGKILL after `graceMs`. Resolves when it is gone. */
export async function endProcess(id: ProcessId, graceMs: number, first: NodeJS.Signals = 'SIGTERM'): Promise<void> {
  signalProcess(id, first)
  const deadline = Date.now() + graceMs
  let killed = false
  while (isRunning(id)) {
    if (!killed && Date.now() >= deadline) killed = signalProcess(id, 'SIGKILL')
    await pause()
  }
}
