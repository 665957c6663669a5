// The relay's two directions between a TCP socket and a tunnel, where most bytes of a mesh pass: no stream, no allocation
// and as few system calls as the kernel's buffers allow.
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { acquireBatch, acquireSmall, batchBytes, releaseBatch, releaseSmall, smallBytes } from './buffers.ts'
import { frameHeaderBytes } from './http2/constants.ts'
import { readInto } from './read-into.ts'
import type { DirectBytes } from './types.ts'

interface TunnelEnd {
  readonly stream: Duplex
  readonly direct: DirectBytes
  readonly broken?: (() => boolean) | undefined
}

/** Room for a frame's header, then what is read: the frame is complete without copying. */
const framed = Buffer.allocUnsafeSlow(frameHeaderBytes + batchBytes)
const readBuffer = framed.subarray(frameHeaderBytes)

export function copyIntoTunnel(from: Socket, { stream, direct }: TunnelEnd, count: (bytes: number) => void): void {
  direct.onReady(() => {
    if (!from.destroyed) from.resume()
  })
  from.on('end', () => stream.end())
  let early = true
  for (;;) {
    const chunk: Buffer | null = from.read()
    if (chunk === null) break
    count(chunk.length)
    if (!direct.send(chunk)) early = false
  }
  const taken = readInto(from, readBuffer, (bytes) => {
    count(bytes)
    return direct.send(readBuffer.subarray(0, bytes), framed)
  })
  if (!taken) {
    from.on('data', (chunk: Buffer) => {
      count(chunk.length)
      if (!direct.send(chunk)) from.pause()
    })
  }
  if (early) from.resume()
}

const promptBytes = 4 * 1024

export function copyOutOfTunnel(
  { stream, direct, broken }: TunnelEnd,
  to: Socket,
  count: (bytes: number) => void,
): void {
  let batch: Buffer | undefined
  let filled = 0
  let flushing: NodeJS.Immediate | undefined

  function flush(): void {
    clearImmediate(flushing)
    flushing = undefined
    if (batch === undefined) return
    const [buffer, length] = [batch, filled]
    batch = undefined
    filled = 0
    if (to.destroyed || to.writableEnded) {
      releaseBatch(buffer)
      direct.consumed(length)
      return
    }
    if (length <= smallBytes) {
      const small = acquireSmall()
      buffer.copy(small, 0, 0, length)
      releaseBatch(buffer)
      to.write(small.subarray(0, length), () => {
        releaseSmall(small)
        direct.consumed(length)
      })
      return
    }
    to.write(buffer.subarray(0, length), () => {
      releaseBatch(buffer)
      direct.consumed(length)
    })
  }

  stream.on('end', () => {
    flush()
    if (broken?.() !== true) to.end()
  })
  // A record of TLS holds 16 KiB at most, and each is handed over by itself: what one read of the kernel brought is written as one.
  direct.receive((part) => {
    count(part.length)
    // Alone and small: an answer somebody waits for rather than a piece of many bytes.
    if (batch === undefined && part.length <= promptBytes && !to.destroyed && !to.writableEnded) {
      const { length } = part
      to.write(Buffer.from(part), () => direct.consumed(length))
      return
    }
    for (let at = 0; at < part.length; ) {
      batch ??= acquireBatch()
      const copied = part.copy(batch, filled, at)
      filled += copied
      at += copied
      if (filled === batchBytes) flush()
    }
    flushing ??= setImmediate(flush)
  }, flush)
  stream.resume()
}
