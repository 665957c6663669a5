// Pings a connection so that a dead peer is noticed.
import type { Http2Options } from '../types.ts'

export interface Pings {
  /** An answer has come, or the connection has just begun: the next ping is due after the interval. */
  answered(): void
  /** One now, beyond the regular ones. */
  send(): void
  close(): void
}

export function createPings(
  { pingIntervalMs, pingTimeoutMs }: Pick<Http2Options, 'pingIntervalMs' | 'pingTimeoutMs'>,
  { send, onDead }: { send(payload: Buffer): void; onDead(): void },
): Pings {
  let timer: NodeJS.Timeout | undefined
  let sent = 0
  const ping = () => {
    const payload = Buffer.alloc(8)
    sent += 1
    payload.writeUInt32BE(sent, 4)
    send(payload)
  }
  return {
    answered() {
      clearTimeout(timer)
      timer = setTimeout(() => {
        timer = setTimeout(onDead, pingTimeoutMs)
        ping()
      }, pingIntervalMs)
    },
    send: ping,
    close: () => clearTimeout(timer),
  }
}
