// The blocks of one transaction after the other: what is made, what is replaced, and when replaced blocks can be used again.
import type { Arena } from './arena.ts'
import { generationOf, lowerOf } from './block.ts'
import type { Memory } from './memory.ts'

export interface BlockStore {
  /** The generation being made. */
  readonly generation: number
  allocate(words: number, kind: number): number
  /** Whether the transaction made the block: nobody else sees it, so it may be changed. */
  isOwn(block: number): boolean
  capacity(block: number): number
  /** The block is not part of the new generation. */
  retire(block: number): void
  /** The generation is complete: what it replaced waits for the readers. */
  commit(): void
  /** Takes back everything the transaction made. */
  abort(): void
  /** Frees what all readers have left behind: those that are at this generation or later. */
  reclaim(oldestRead: number): void
  /** Blocks that wait for readers. */
  waiting(): number
}

export function createBlockStore(memory: Memory, arena: Arena, firstGeneration: number): BlockStore {
  let generation = firstGeneration
  let made = new Int32Array(1024)
  let madeCount = 0
  let retired: number[] = []
  const waiting: { readonly generation: number; readonly blocks: readonly number[] }[] = []

  // A free block has a second word below zero, which no generation has.
  const isOwn = (block: number): boolean =>
    memory.words[block + 1] === lowerOf(generation) && generationOf(memory, block) === generation

  return {
    get generation() {
      return generation
    },
    allocate(words, kind) {
      const block = arena.allocate(words, kind, generation)
      if (madeCount === made.length) {
        const longer = new Int32Array(made.length * 2)
        longer.set(made)
        made = longer
      }
      made[madeCount] = block
      madeCount += 1
      return block
    },
    isOwn,
    capacity: (block) => arena.capacity(block),
    retire(block) {
      if (isOwn(block)) arena.free(block)
      else retired.push(block)
    },
    commit() {
      if (retired.length > 0) waiting.push({ generation, blocks: retired })
      retired = []
      forgetMade()
      generation += 1
    },
    abort() {
      // A block that was freed and made again stands here twice, but is its own only until it is freed; and before the arena
      // settles, what is not a block any more still looks free.
      for (let index = 0; index < madeCount; index += 1) {
        const block = made[index] as number
        if (isOwn(block)) arena.free(block)
      }
      retired = []
      forgetMade()
    },
    reclaim(oldestRead) {
      let done = 0
      for (const batch of waiting) {
        if (batch.generation > oldestRead) break
        for (const block of batch.blocks) arena.free(block)
        done += 1
      }
      waiting.splice(0, done)
      arena.settle()
    },
    waiting: () => waiting.reduce((sum, { blocks }) => sum + blocks.length, 0),
  }

  function forgetMade(): void {
    madeCount = 0
    arena.settle()
    if (made.length > 65_536) made = new Int32Array(1024)
  }
}
