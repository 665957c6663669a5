// Lines on their way from one thread to another through shared memory: one writes, one reads, nobody waits.

/** The memory of a ring; may be sent to another thread. */
export interface LineRingMemory {
  readonly bytes: SharedArrayBuffer
  readonly counters: SharedArrayBuffer
}

export interface LineWriter {
  /** Takes the text, which ends with a line, whole, or drops and counts it when there is no room. True when the reader sleeps and has to be woken. */
  write(text: string, lines: number): boolean
  /** Lines lost so far. */
  readonly dropped: number
}

export interface LineReader {
  /** What was written since, in order; it is taken out. Whole lines, in at most so many bytes, or one that is longer. */
  read(maxBytes: number): Buffer
  /** Says that the next line written has to wake the reader. What comes back is false when there is something to read already. */
  sleep(): boolean
  readonly dropped: number
}

// Positions count bytes for ever, modulo 2^32; the size of the ring divides that.
const writePosition = 0
const readPosition = 1
const readerAwake = 2
const droppedLines = 3

const newline = 10

/** `size` in bytes is a power of two. */
export function createLineRing(size: number): LineRingMemory {
  if (!Number.isInteger(Math.log2(size))) throw new RangeError(`the size of a ring must be a power of two, not ${size}`)
  return { bytes: new SharedArrayBuffer(size), counters: new SharedArrayBuffer(4 * Int32Array.BYTES_PER_ELEMENT) }
}

export function writeLines({ bytes, counters }: LineRingMemory): LineWriter {
  const ring = Buffer.from(bytes)
  const shared = new Int32Array(counters)
  const size = ring.length
  return {
    write(text, lines) {
      const start = Atomics.load(shared, writePosition)
      const free = size - ((start - Atomics.load(shared, readPosition)) >>> 0)
      const at = (start >>> 0) % size
      const length = text.length * 3 <= free ? text.length * 3 : Buffer.byteLength(text)
      if (length > free) {
        Atomics.add(shared, droppedLines, lines)
        return false
      }
      let written: number
      if (at + length <= size) written = ring.write(text, at)
      else {
        const encoded = Buffer.from(text)
        const first = encoded.copy(ring, at)
        encoded.copy(ring, 0, first)
        written = encoded.length
      }
      Atomics.store(shared, writePosition, (start + written) | 0)
      return Atomics.exchange(shared, readerAwake, 1) === 0
    },
    get dropped() {
      return Atomics.load(shared, droppedLines) >>> 0
    },
  }
}

export function readLines({ bytes, counters }: LineRingMemory): LineReader {
  const ring = Buffer.from(bytes)
  const shared = new Int32Array(counters)
  const size = ring.length
  /** How many bytes from a position on, of those that wait, are the first line. */
  const lineLength = (at: number, available: number): number => {
    const end = ring.subarray(at, at + available).indexOf(newline)
    return end >= 0 ? end + 1 : size - at + ring.indexOf(newline) + 1
  }
  const waiting = (): number => (Atomics.load(shared, writePosition) - Atomics.load(shared, readPosition)) >>> 0
  function copy(at: number, length: number): Buffer {
    const copied = Buffer.allocUnsafe(length)
    const first = ring.copy(copied, 0, at, Math.min(size, at + length))
    ring.copy(copied, first, 0, length - first)
    return copied
  }
  return {
    read(maxBytes) {
      const available = waiting()
      const start = Atomics.load(shared, readPosition)
      const at = (start >>> 0) % size
      const piece = copy(at, Math.min(available, maxBytes))
      const whole = piece.length === available ? available : piece.lastIndexOf(newline) + 1
      const taken = whole > 0 || available === 0 ? piece.subarray(0, whole) : copy(at, lineLength(at, available))
      Atomics.store(shared, readPosition, (start + taken.length) | 0)
      return taken
    },
    sleep() {
      Atomics.store(shared, readerAwake, 0)
      return waiting() === 0
    },
    get dropped() {
      return Atomics.load(shared, droppedLines) >>> 0
    },
  }
}
