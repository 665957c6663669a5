// Reads of sockets into one buffer that all of a thread share. Node otherwise allocates 64 KiB for every read, which costs
// more than the copying; it offers a buffer of one's own only to sockets that it creates itself (`onread`), so that for
// accepted and TLS sockets the same fields are set afterwards.
import type { Socket } from 'node:net'

interface ReadingHandle {
  useUserBuffer(buffer: Uint8Array): void
}

/**
 * From now on `take` is called with the number of bytes just read into `buffer`, which are its own during the call only;
 * when it returns false reading pauses until `resume()`. What was read before is in the stream as usual: read it first.
 * Returns false, and changes nothing, where this Node does not offer it. The end and errors are told as usual.
 */
export function readInto(socket: Socket, buffer: Buffer, take: (bytes: number) => boolean): boolean {
  const handle: unknown = Reflect.get(socket, '_handle')
  const symbols = Object.getOwnPropertySymbols(socket)
  const field = (name: string) => symbols.find(({ description }) => description === name)
  const bufferField = field('kBuffer')
  const callbackField = field('kBufferCb')
  if (!isReadingHandle(handle) || bufferField === undefined || callbackField === undefined) return false
  Reflect.set(socket, bufferField, buffer)
  Reflect.set(socket, callbackField, take)
  handle.useUserBuffer(buffer)
  return true
}

function isReadingHandle(handle: unknown): handle is ReadingHandle {
  return typeof handle === 'object' && handle !== null && typeof Reflect.get(handle, 'useUserBuffer') === 'function'
}
