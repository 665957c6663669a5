// Places for numbers in typed arrays that are added as they are needed.

/** Where a series keeps its numbers. Its one writer adds to `cells[at]`. */
export interface Place {
  readonly chunk: number
  readonly cells: Float64Array
  readonly at: number
}

export interface Cells {
  /** A place of so many neighbouring numbers, all zero. */
  take(count: number): Place
  /** The place may be taken again. */
  give(place: Place, count: number): void
}

const firstChunkCells = 128
const largestChunkCells = 8192

/**
 * `allocate` gives the memory, `onChunk` is told of each piece of it, in the order of the numbers that places carry.
 * A number is eight bytes at an address that eight divides: 64-bit processors read and write it in one piece, so that another
 * thread sees the old or the new one.
 */
export function createCells(
  allocate: (bytes: number) => ArrayBufferLike,
  onChunk: (cells: Float64Array) => void = () => undefined,
): Cells {
  let chunks = 0
  let current: Float64Array = new Float64Array(0)
  let used = 0
  const free = new Map<number, Place[]>()
  return {
    take(count) {
      const known = free.get(count)?.pop()
      if (known !== undefined) {
        known.cells.fill(0, known.at, known.at + count)
        return known
      }
      if (used + count > current.length) {
        const size = Math.max(count, Math.min(largestChunkCells, current.length * 2 || firstChunkCells))
        current = new Float64Array(allocate(size * Float64Array.BYTES_PER_ELEMENT))
        chunks += 1
        used = 0
        onChunk(current)
      }
      const place = { chunk: chunks - 1, cells: current, at: used }
      used += count
      return place
    },
    give(place, count) {
      const places = free.get(count) ?? []
      places.push(place)
      free.set(count, places)
    },
  }
}
