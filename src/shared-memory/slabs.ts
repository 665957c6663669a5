// Blocks of one size, cut from runs of pages. A run with nothing in it is given back, so that other sizes can have it.
import { type Memory, pageWords } from './memory.ts'
import type { Pages } from './pages.ts'

export interface Slabs {
  take(): number
  giveBack(block: number): void
}

interface Slab {
  readonly firstPage: number
  readonly end: number
  /** Where no block has been cut yet. */
  next: number
  /** The second word of a free block is the complement of the next, and so below zero. */
  firstFree: number
  used: number
  /** Its place among those with room; -1 when it is full. */
  place: number
}

const slabPages = 16

/** `slabOf`, by page, is common to all sizes. */
export function createSlabs(memory: Memory, pages: Pages, slabOf: Map<number, Slab>, size: number): Slabs {
  const withRoom: Slab[] = []

  function addRoom(slab: Slab): void {
    slab.place = withRoom.length
    withRoom.push(slab)
  }

  function removeRoom(slab: Slab): void {
    const last = withRoom.pop()
    if (last !== undefined && last !== slab) {
      withRoom[slab.place] = last
      last.place = slab.place
    }
    slab.place = -1
  }

  function newSlab(): Slab {
    const firstPage = pages.take(slabPages)
    const start = firstPage * pageWords
    const slab = { firstPage, end: start + slabPages * pageWords, next: start, firstFree: 0, used: 0, place: -1 }
    for (let page = firstPage; page < firstPage + slabPages; page += 1) slabOf.set(page, slab)
    addRoom(slab)
    return slab
  }

  return {
    take() {
      const slab = withRoom[withRoom.length - 1] ?? newSlab()
      let block = slab.firstFree
      if (block !== 0) {
        slab.firstFree = ~(memory.words[block + 1] as number)
      } else {
        block = slab.next
        slab.next += size
      }
      slab.used += 1
      if (slab.firstFree === 0 && slab.next + size > slab.end) removeRoom(slab)
      return block
    },
    giveBack(block) {
      const slab = slabOf.get(Math.floor(block / pageWords))
      if (slab === undefined) throw new RangeError(`no block at ${block}`)
      memory.words[block + 1] = ~slab.firstFree
      slab.firstFree = block
      slab.used -= 1
      if (slab.place < 0) addRoom(slab)
      // One is kept, so that a single block made and freed in turn does not take a run each time.
      if (slab.used > 0 || withRoom.length === 1) return
      removeRoom(slab)
      for (let page = slab.firstPage; page < slab.firstPage + slabPages; page += 1) slabOf.delete(page)
      pages.giveBack(slab.firstPage, slabPages)
    },
  }
}

export type { Slab }
