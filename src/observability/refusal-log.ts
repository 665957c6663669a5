// Lines about refused callers, few enough that those who are refused all the time cannot fill the log.
import type { Scope } from './logging.ts'

const mostASecond = 20

/** Of more lines a second the number is told with the next one that is written. `now` in milliseconds. */
export function createRefusalLog(
  log: Pick<Scope, 'warn'>,
  now: () => number = () => performance.now(),
): (message: string, fields: Readonly<Record<string, string>>) => void {
  let secondBegan = Number.NEGATIVE_INFINITY
  let written = 0
  let unwritten = 0
  return (message, fields) => {
    if (now() - secondBegan >= 1_000) {
      secondBegan = now()
      written = 0
    }
    if (written >= mostASecond) {
      unwritten += 1
      return
    }
    written += 1
    log.warn(message, unwritten === 0 ? fields : { ...fields, unwritten })
    unwritten = 0
  }
}
