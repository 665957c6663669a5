// One growable buffer that all threads see: its header, and the views through which a thread reads and writes it.
import { SharedMemoryError } from './errors.ts'

/** Can be posted to another thread. */
export interface SharedMemoryHandle {
  readonly buffer: SharedArrayBuffer
}

/** A thread's views of the buffer. Views that follow a growing buffer by themselves are four times slower than those made anew. */
export interface Memory {
  readonly buffer: SharedArrayBuffer
  /** A block is named by the index of its first word. */
  words: Int32Array
  /** The generations of the header, which do not fit into a word. */
  readonly longs: BigInt64Array
  bytes: Buffer
}

export const wordBytes = 4

/** What the words at the beginning of the buffer mean. */
export const header = {
  magic: 0,
  roots: 2,
  hashSeed: 4,
  tables: 5,
  readers: 6,
}

/** What the pairs of words mean that come after those. */
export const longs = {
  /** The newest complete generation; its root is in `roots`, by whether it is even or odd. */
  generation: 4,
  /** One a reader: the generation it reads, 0 while there is no such reader. */
  slots: 8,
}

/** Counted in whole numbers of 53 bits: those end in no lifetime. */
export const loadGeneration = (memory: Memory, at: number): number => Number(Atomics.load(memory.longs, at))

export function storeGeneration(memory: Memory, at: number, generation: number): void {
  Atomics.store(memory.longs, at, BigInt(generation))
}

/** The place of the root of a generation. */
export const rootPlace = (generation: number): number => header.roots + (generation % 2)

export const magic = 0x4c_54_4e_32
export const pageWords = 1024
export const headerPages = 2
export const mostReaders = (headerPages * pageWords) / 2 - longs.slots

/** Places are words with a sign: those of more would be others' places. */
const mostBytes = 2 ** 31 * wordBytes

/** Address space is reserved, memory is used as it is written. Less is reserved where the system does not give as much, and 8 GiB at most. */
export function createMemory(limitBytes: number, initialBytes: number): Memory {
  let reserved = Math.max(Math.min(limitBytes, mostBytes), initialBytes)
  for (;;) {
    try {
      return viewsOf(new SharedArrayBuffer(initialBytes, { maxByteLength: reserved }))
    } catch (cause) {
      if (reserved <= initialBytes) throw outOfMemory(`no ${initialBytes} bytes of shared memory`, cause)
      reserved = Math.max(initialBytes, Math.floor(reserved / 2 / (pageWords * wordBytes)) * pageWords * wordBytes)
    }
  }
}

export function openMemory({ buffer }: SharedMemoryHandle): Memory {
  const isOurs =
    buffer.byteLength >= headerPages * pageWords * wordBytes && new Int32Array(buffer)[header.magic] === magic
  if (!isOurs) throw new SharedMemoryError('INVALID_MEMORY', 'the shared memory is not of this version')
  return viewsOf(buffer)
}

/** Takes in what the buffer has grown by. */
export function renewViews(memory: Memory): void {
  if (memory.bytes.byteLength === memory.buffer.byteLength) return
  const { words, bytes } = viewsOf(memory.buffer)
  memory.words = words
  memory.bytes = bytes
}

/** Throws OUT_OF_MEMORY when the buffer cannot have so many bytes. */
export function growTo(memory: Memory, byteLength: number): void {
  const { buffer } = memory
  if (byteLength > buffer.maxByteLength) {
    throw outOfMemory(`shared memory is limited to ${buffer.maxByteLength} bytes`)
  }
  try {
    buffer.grow(byteLength)
  } catch (cause) {
    throw outOfMemory(`shared memory does not grow from ${buffer.byteLength} to ${byteLength} bytes`, cause)
  }
  renewViews(memory)
}

export const outOfMemory = (message: string, cause?: unknown): SharedMemoryError =>
  new SharedMemoryError('OUT_OF_MEMORY', message, cause === undefined ? undefined : { cause })

function viewsOf(buffer: SharedArrayBuffer): Memory {
  const { byteLength } = buffer
  return {
    buffer,
    words: new Int32Array(buffer, 0, byteLength / wordBytes),
    longs: new BigInt64Array(buffer, 0, (headerPages * pageWords) / 2),
    bytes: Buffer.from(buffer, 0, byteLength),
  }
}
