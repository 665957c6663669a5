// The other end of a stream: takes messages, sends requests, is told of its end, and is cut off when it takes nothing any more.
import type { EventEmitter } from 'node:events'
import type { Writable } from 'node:stream'
import type { CallTransport } from '../../grpc/server/index.ts'

export interface Outlet {
  /** `done` is called when the bytes have left this process or the stream is dead; `isLost`: before they had left. */
  write(message: Buffer, done: (isLost: boolean) => void): void
  /** Stops and resumes the flow of requests. */
  hold(on: boolean): void
  /** Ends the stream once what is under way has left. */
  fail(error: unknown): void
}

export interface CallOutlet extends Outlet {
  /** Ends the stream, and its whole connection when the client has not taken its end soon. */
  expel(error: unknown): void
}

export interface OutletOptions {
  /** What the call is made over; undefined where nobody knows: its client cannot be cut off. */
  readonly transport: CallTransport | undefined
  /** After this time without any progress of a message its client is cut off; 0: never. */
  readonly sendTimeoutMs: number
  readonly refuse: (error: unknown) => void
  /** The client is cut off. */
  readonly stuck: () => void
}

/** What is needed of a stream of gRPC. */
type Stream = EventEmitter & Pick<Writable, 'write' | 'destroyed'> & { pause(): unknown; resume(): unknown }

/** Who takes less than this is told pings, and reads nothing. */
const leastBytesASecond = 128
/** How long an expelled client may take to take note of it. */
const expelMs = 2_000

export function outletOf(call: Stream, options: OutletOptions): CallOutlet {
  const { transport, sendTimeoutMs } = options
  let failed = false
  let expulsion: NodeJS.Timeout | undefined
  call.on('error', () => {})
  call.once('close', () => clearTimeout(expulsion))

  function fail(error: unknown): void {
    if (failed) return
    failed = true
    options.refuse(error)
  }

  /** Looks after the message under way: what counts is that the client takes something, not how long it takes for all. Returns its end. */
  function watch(): () => void {
    if (transport === undefined || sendTimeoutMs === 0) return () => {}
    const { connection } = transport
    const least = Math.max(1, (leastBytesASecond * sendTimeoutMs) / 1_000)
    let taken = connection.bytesTaken
    let timer = setTimeout(look, sendTimeoutMs)
    function look(): void {
      const now = connection.bytesTaken
      if (now - taken < least) {
        options.stuck()
        connection.destroy('stuck')
        return
      }
      taken = now
      timer = setTimeout(look, sendTimeoutMs)
    }
    return () => clearTimeout(timer)
  }

  return {
    write(message, done) {
      const unwatch = watch()
      let finished = false
      const finish = (isLost: boolean): void => {
        if (finished) return
        finished = true
        unwatch()
        call.off('close', lose)
        done(isLost)
      }
      const lose = (): void => finish(true)
      call.once('close', lose)
      call.write(message, (error?: Error | null) => finish(error !== null && error !== undefined))
    },
    hold(on) {
      transport?.hold(on)
      if (on) call.pause()
      else call.resume()
    },
    fail,
    expel(error) {
      fail(error)
      if (call.destroyed || transport === undefined) return
      expulsion ??= setTimeout(() => transport.connection.destroy('forced'), expelMs)
    },
  }
}
