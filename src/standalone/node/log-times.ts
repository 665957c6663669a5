// When the bytes of a log were written: kept beside the log, since containers write to it directly.
import { appendFileSync, type FSWatcher, rmSync, statSync, watch } from 'node:fs'
import { readIfThere } from '../files.ts'

/** Up to this offset the log was written by this time. */
export interface LogTime {
  readonly end: number
  readonly ms: number
}

const lookMs = 50

const fileOf = (log: string) => `${log}.times`

/** Notes the times of a log that grows, until disposed. */
export function recordLogTimes(log: string): Disposable {
  let end = 0
  let timer: NodeJS.Timeout | undefined
  const look = () => {
    timer = undefined
    const stat = statSync(log, { throwIfNoEntry: false })
    if (stat === undefined || stat.size === end) return
    // A log that became shorter was rotated.
    if (stat.size < end) rmSync(fileOf(log), { force: true })
    end = stat.size
    try {
      appendFileSync(fileOf(log), `${end} ${Math.round(stat.mtimeMs)}\n`)
    } catch {
      // A full disk, or the pod's files are just removed: the log itself is what counts.
    }
  }
  const watcher: FSWatcher = watch(log, { persistent: false }, () => {
    timer ??= setTimeout(look, lookMs)
  })
  watcher.on('error', () => undefined)
  look()
  return {
    [Symbol.dispose]() {
      watcher.close()
      clearTimeout(timer)
      look()
    },
  }
}

export async function readLogTimes(log: string): Promise<LogTime[]> {
  const lines = ((await readIfThere(fileOf(log))) ?? '').split('\n').slice(0, -1)
  return lines.map((line) => {
    const [end = '0', ms = '0'] = line.split(' ')
    return { end: Number(end), ms: Number(ms) }
  })
}

/** Where what was written at or after a time begins. */
export function positionSince(times: readonly LogTime[], sinceMs: number): number {
  return times.findLast(({ ms }) => ms < sinceMs)?.end ?? 0
}

/** When the byte at an offset was written; undefined when that is not noted yet. */
export function timeAt(times: readonly LogTime[], offset: number): number | undefined {
  let [low, high] = [0, times.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if ((times[middle]?.end ?? 0) > offset) high = middle
    else low = middle + 1
  }
  return times[low]?.ms
}
