// Pings an HTTP/2 session so that a dead peer is noticed.
import type { Http2Session } from 'node:http2'
import type { Http2Options } from './types.ts'

/** Pings until the session closes; calls `onDead` when an answer stays out. */
export function keepAlive(
  session: Http2Session,
  options: Pick<Http2Options, 'pingIntervalMs' | 'pingTimeoutMs'>,
  onDead: () => void,
): void {
  let timer: NodeJS.Timeout | undefined
  const ping = () => {
    // Its close is not told yet, and a ping would throw.
    if (session.destroyed) return
    timer = setTimeout(onDead, options.pingTimeoutMs)
    const sent = session.ping((error) => {
      clearTimeout(timer)
      if (error === null && !session.destroyed) timer = setTimeout(ping, options.pingIntervalMs)
    })
    if (!sent) clearTimeout(timer)
  }
  timer = setTimeout(ping, options.pingIntervalMs)
  session.once('close', () => clearTimeout(timer))
}
