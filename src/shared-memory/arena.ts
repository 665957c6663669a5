// Gives out blocks of the memory by size: small ones from slabs of one size, large ones as runs of pages. The writer's alone.
import { lowerOf, upperOf } from './block.ts'
import { growTo, type Memory, outOfMemory, pageWords, wordBytes } from './memory.ts'
import { createPages, type Pages } from './pages.ts'
import { createSlabs, type Slab, type Slabs } from './slabs.ts'

export interface Arena {
  /** Whether the part of the memory that is kept for taking things out may be used as well. */
  openReserve(open: boolean): void
  /** A block of at least that many words, its kind and the generation written; the rest is whatever was there. */
  allocate(words: number, kind: number, generation: number): number
  /** Takes the block back. Blocks of its size can have its place at once, others after `settle`; until then it still looks free. */
  free(block: number): void
  settle(): void
  /** How many words the block has room for. */
  capacity(block: number): number
  /** Of blocks given out. */
  usedBytes(): number
}

/** One page of so many is kept: what is taken out needs new blocks for what led to it, until nobody reads the old ones. */
const reserveShare = 8

const largestSmall = 1024
/** In steps of two words up to 36, so that every branch fits well; then four steps each doubling. */
const sizes: readonly number[] = sizeClasses()
const classOfWords = classTable()
/** In the eight bits of the first word above the kind: the size class, or `large`. */
const classShift = 2
const classMask = 0xff
const large = 0xff

export function createArena(memory: Memory, firstPage: number): Arena {
  const all = createPages(firstPage, (end) => extendTo(memory, end * pageWords * wordBytes))
  const mostPages = Math.floor(memory.buffer.maxByteLength / (pageWords * wordBytes)) - firstPage
  const usualPages = mostPages - Math.floor(mostPages / reserveShare)
  let allowedPages = usualPages
  let takenPages = 0
  const pages: Pages = {
    take(count) {
      if (takenPages + count > allowedPages)
        throw outOfMemory(`shared memory is limited to ${memory.buffer.maxByteLength} bytes`)
      const first = all.take(count)
      takenPages += count
      return first
    },
    giveBack(first, count) {
      takenPages -= count
      all.giveBack(first, count)
    },
    settle: all.settle,
  }
  const slabOf = new Map<number, Slab>()
  const slabs = sizes.map((size) => createSlabs(memory, pages, slabOf, size))
  /** By large block. */
  const pageCounts = new Map<number, number>()
  const pageCount = (block: number): number => pageCounts.get(block) ?? 0
  let usedWords = 0

  return {
    allocate(words, kind, generation) {
      let block: number
      if (words <= largestSmall) {
        const sizeClass = classOfWords[words] as number
        block = (slabs[sizeClass] as Slabs).take()
        memory.words[block] = kind | (sizeClass << classShift) | upperOf(generation)
        usedWords += sizes[sizeClass] as number
      } else {
        const count = Math.ceil(words / pageWords)
        block = pages.take(count) * pageWords
        memory.words[block] = kind | (large << classShift) | upperOf(generation)
        pageCounts.set(block, count)
        usedWords += count * pageWords
      }
      memory.words[block + 1] = lowerOf(generation)
      return block
    },
    free(block) {
      const sizeClass = classOf(memory, block)
      if (sizeClass === large) {
        const count = pageCount(block)
        pageCounts.delete(block)
        usedWords -= count * pageWords
        memory.words[block + 1] = -1
        pages.giveBack(block / pageWords, count)
        return
      }
      usedWords -= sizes[sizeClass] as number
      ;(slabs[sizeClass] as Slabs).giveBack(block)
    },
    settle: () => pages.settle(),
    openReserve(open) {
      allowedPages = open ? mostPages : usualPages
    },
    capacity(block) {
      const sizeClass = classOf(memory, block)
      return sizeClass === large ? pageCount(block) * pageWords : (sizes[sizeClass] as number)
    },
    usedBytes: () => usedWords * wordBytes,
  }
}

const classOf = (memory: Memory, block: number): number => ((memory.words[block] as number) >>> classShift) & classMask

const leastGrowth = 1024 * 1024

/** By an eighth at a time, so that growing is rare. */
function extendTo(memory: Memory, needed: number): void {
  const { byteLength, maxByteLength } = memory.buffer
  if (needed <= byteLength) return
  const comfortable = Math.max(needed, byteLength + Math.max(leastGrowth, byteLength >>> 3))
  const whole = Math.ceil(comfortable / (pageWords * wordBytes)) * pageWords * wordBytes
  growTo(memory, needed > maxByteLength ? needed : Math.min(whole, maxByteLength))
}

function sizeClasses(): number[] {
  const all: number[] = []
  for (let words = 4; words <= 36; words += 2) all.push(words)
  for (let base = 32; base < largestSmall; base *= 2) {
    for (const quarter of [5, 6, 7, 8]) if ((base / 4) * quarter > 36) all.push((base / 4) * quarter)
  }
  return all
}

function classTable(): Uint8Array {
  const table = new Uint8Array(largestSmall + 1)
  let sizeClass = 0
  for (let words = 0; words <= largestSmall; words += 1) {
    if (words > (sizes[sizeClass] as number)) sizeClass += 1
    table[words] = sizeClass
  }
  return table
}
