// A stream of an HTTP/2 session as bytes both ways: as a Node stream, and without one for who moves many.
import { Duplex } from 'node:stream'
import type { DirectBytes } from '../types.ts'
import { errorCode } from './constants.ts'
import type { SessionStream, StreamEvents } from './stream.ts'

export interface ByteStream {
  readonly stream: Duplex
  readonly direct: DirectBytes
  readonly events: Omit<StreamEvents, 'headers'>
  reset(code?: number): void
  broken(): boolean
}

/** `port` is asked for at the first use: a client's stream gets its id after its events are known. */
export function createByteStream(port: () => SessionStream): ByteStream {
  let consumer: ((part: Buffer) => void) | undefined
  let flush: (() => void) | undefined
  let onReady: (() => void) | undefined
  let continueWriting: (() => void) | undefined
  let resetCode: number | undefined
  let over = false
  /** Handed to the Node stream, which is full. */
  let held = 0
  /** Passed on although it had been given back to the window before. */
  let creditedEarly = 0

  const stream = new Duplex({
    allowHalfOpen: true,
    read() {
      if (held === 0) return
      const bytes = held
      held = 0
      port().consumed(bytes)
    },
    write(chunk: Buffer, _encoding, callback) {
      if (over || port().send(chunk)) callback()
      else continueWriting = callback
    },
    final(callback) {
      if (over) callback()
      else port().end(callback)
    },
    destroy(error, callback) {
      if (!over) {
        resetCode ??= errorCode.cancel
        port().reset(errorCode.cancel)
      }
      callback(error)
    },
  })

  const ready = () => {
    const resume = continueWriting
    continueWriting = undefined
    resume?.()
    onReady?.()
  }

  return {
    stream,
    direct: {
      send: (bytes, framed) => port().send(bytes, framed),
      onReady(listener) {
        onReady = listener
      },
      receive(take, flushTaken) {
        // What came before is in the Node stream.
        for (;;) {
          const early: Buffer | null = stream.read()
          if (early === null) break
          creditedEarly += early.length
          take(early)
        }
        consumer = take
        flush = flushTaken
        if (held > 0) port().consumed(held)
        held = 0
      },
      consumed(bytes) {
        const before = Math.min(bytes, creditedEarly)
        creditedEarly -= before
        if (bytes > before) port().consumed(bytes - before)
      },
    },
    events: {
      part(bytes) {
        if (consumer !== undefined) return consumer(bytes)
        if (stream.push(Buffer.from(bytes)) && held === 0) port().consumed(bytes.length)
        else held += bytes.length
      },
      end() {
        stream.push(null)
        if (consumer !== undefined) stream.resume()
      },
      ready,
      closed(code, error) {
        over = true
        if (code === undefined) return ready()
        resetCode = code
        flush?.()
        ready()
        if (code === errorCode.noError) {
          // The peer has said everything and wants nothing more.
          if (!stream.readableEnded) {
            stream.once('end', () => stream.destroy())
            stream.push(null)
          } else stream.destroy()
          return
        }
        stream.destroy(error ?? (code === errorCode.cancel ? undefined : resetError(code)))
      },
    },
    reset(code = errorCode.cancel) {
      resetCode ??= code
      if (!over) port().reset(code)
      stream.destroy()
    },
    broken: () => resetCode !== undefined && resetCode !== errorCode.noError,
  }
}

const resetError = (code: number) =>
  Object.assign(new Error(`Stream closed with error code ${code}`), { code: 'ERR_HTTP2_STREAM_ERROR' })
