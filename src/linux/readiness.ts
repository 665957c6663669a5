// Waits for descriptors that Node's event loop cannot watch (SOCK_SEQPACKET). The kernel signals activity with SIGIO,
// which Node delivers on the event loop: no thread waits, and nothing blocks.
import { F_GETFL, F_SETFL, F_SETOWN, O_ASYNC } from './constants.ts'
import { checked, libc } from './libc.ts'

/** A lost or coalesced signal delays a waiter by no more than this. */
const sweepMs = 1_000

const waiters = new Set<() => void>()
let sweep: NodeJS.Timeout | undefined
let listening = false

/** Makes the kernel announce activity of the descriptor. Before the first waiter; ends when the descriptor closes. */
export function announceActivity(fd: number): void {
  if (!listening) {
    // Kept for the life of the process: without a handler a late SIGIO would end it.
    process.on('SIGIO', wake)
    listening = true
  }
  checked('fcntl', libc().fcntl(fd, F_SETOWN, 'int', process.pid))
  const flags = checked('fcntl', libc().fcntl(fd, F_GETFL, 'int', 0))
  checked('fcntl', libc().fcntl(fd, F_SETFL, 'int', flags | O_ASYNC))
}

/**
 * Calls `attempt` now and after every announced activity until it returns something other than undefined. Rejects with
 * what `attempt` throws, and when the signal aborts with its reason.
 */
export function untilReady<T>(attempt: () => T | undefined, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const finish = () => {
      waiters.delete(step)
      signal.removeEventListener('abort', abort)
      if (waiters.size === 0) {
        clearInterval(sweep)
        sweep = undefined
      }
    }
    const abort = () => {
      finish()
      reject(signal.reason)
    }
    const step = () => {
      try {
        const result = attempt()
        if (result === undefined) return
        finish()
        resolve(result)
      } catch (error) {
        finish()
        reject(error)
      }
    }
    if (signal.aborted) return reject(signal.reason)
    signal.addEventListener('abort', abort)
    waiters.add(step)
    sweep ??= setInterval(wake, sweepMs)
    step()
  })
}

function wake(): void {
  for (const step of [...waiters]) step()
}
