// The one thread that writes: transactions that become visible as a whole, or not at all.
import { randomInt } from 'node:crypto'
import { createArena } from './arena.ts'
import * as block from './block.ts'
import { type BlockStore, createBlockStore } from './blocks.ts'
import { createTrieChanges } from './change.ts'
import { SharedMemoryError } from './errors.ts'
import { findLeaf } from './find.ts'
import {
  createMemory,
  header,
  headerPages,
  loadGeneration,
  longs,
  type Memory,
  magic,
  mostReaders,
  pageWords,
  rootPlace,
  type SharedMemoryHandle,
  storeGeneration,
  wordBytes,
} from './memory.ts'
import { createView, rootOf, type Standpoint, type TableView } from './snapshot.ts'

export interface SharedTablesOptions {
  /** Tables are numbered from 0. */
  readonly tables: number
  /** Readers are numbered from 0. */
  readonly readers: number
  /** Address space to reserve at most, and so the most memory ever used. */
  readonly limitBytes: number
  /** The number of the first generation; 1. */
  readonly firstGeneration?: number
}

export interface SharedTables {
  /** For the readers. */
  readonly handle: SharedMemoryHandle
  /** The newest complete generation. */
  readonly view: TableView
  /**
   * Makes the next generation. When `change` throws, or memory ends (a SharedMemoryError `OUT_OF_MEMORY`), nothing has changed.
   * Returns what the readers move to.
   */
  commit(change: (transaction: Transaction) => void, options?: CommitOptions): Standpoint
  usage(): MemoryUsage
}

export interface CommitOptions {
  /** Only takes things out: it may use the memory that is kept for that, so that a full memory can become empty. */
  readonly removesOnly?: boolean
}

export interface MemoryUsage {
  /** In blocks, also those that wait for readers. */
  readonly usedBytes: number
  readonly reservedBytes: number
  readonly limitBytes: number
  /** Blocks no longer part of the newest generation that a reader may still see. */
  readonly waitingBlocks: number
}

/** A view of what is being made, and the ways to change it. */
export interface Transaction extends TableView {
  /** Returns the new leaf. */
  put(table: number, key: string, value: Uint8Array): number
  putWords(table: number, key: string, words: readonly number[]): number
  /** Puts a value into the map of a key, which is made when it is not there. */
  putIn(table: number, key: string, innerKey: string, words: readonly number[]): number
  /** Whether it was there. A map goes with everything in it. */
  remove(table: number, key: string): boolean
  /** A map that becomes empty goes too. */
  removeFrom(table: number, key: string, innerKey: string): boolean
}

export function createSharedTables(options: SharedTablesOptions): SharedTables {
  const { tables, readers, limitBytes, firstGeneration = 1 } = options
  if (readers < 0 || readers > mostReaders) throw new SharedMemoryError('INVALID_MEMORY', `${readers} readers`)
  const memory = createMemory(limitBytes, headerPages * pageWords * wordBytes)
  memory.words[header.hashSeed] = randomInt(-(2 ** 31), 2 ** 31)
  memory.words[header.tables] = tables
  memory.words[header.readers] = readers
  memory.words[header.magic] = magic
  const arena = createArena(memory, headerPages)
  const blocks = createBlockStore(memory, arena, firstGeneration)
  const now = { generation: 0, root: 0 }
  const next = { generation: 0, root: 0 }
  const transaction = createTransaction({ memory, blocks, next, tables })

  function reclaim(): void {
    let oldest = now.generation
    for (let reader = 0; reader < readers; reader += 1) {
      const at = loadGeneration(memory, longs.slots + reader)
      if (at !== 0 && at < oldest) oldest = at
    }
    blocks.reclaim(oldest)
  }

  function publish(): void {
    now.generation = blocks.generation
    now.root = next.root
    Atomics.store(memory.words, rootPlace(now.generation), now.root)
    storeGeneration(memory, longs.generation, now.generation)
    blocks.commit()
    reclaim()
  }

  function commit(change: (transaction: Transaction) => void, { removesOnly = false }: CommitOptions = {}): Standpoint {
    reclaim()
    next.generation = blocks.generation
    next.root = now.root
    arena.openReserve(removesOnly)
    try {
      transaction.begin()
      change(transaction.changes)
    } catch (error) {
      blocks.abort()
      throw error
    }
    publish()
    return { generation: now.generation, root: now.root }
  }

  commit(() => {})
  return {
    handle: { buffer: memory.buffer },
    view: createView(memory, now),
    commit,
    usage() {
      reclaim()
      return {
        usedBytes: arena.usedBytes(),
        reservedBytes: memory.buffer.byteLength,
        limitBytes: memory.buffer.maxByteLength,
        waitingBlocks: blocks.waiting(),
      }
    },
  }
}

interface Making {
  readonly memory: Memory
  readonly blocks: BlockStore
  readonly next: { generation: number; root: number }
  readonly tables: number
}

function createTransaction({ memory, blocks, next, tables }: Making) {
  const tries = createTrieChanges(memory, blocks)
  const seed = block.wordAt(memory, header.hashSeed)

  function setRoot(table: number, root: number): void {
    memory.words[next.root + 2 + table] = root
  }

  /** Retires what the last change took out, with all that hangs below it. */
  function retireReplaced(): boolean {
    const replaced = tries.replaced()
    if (replaced !== 0) tries.dispose(replaced)
    return replaced !== 0
  }

  function insert(table: number, leaf: number, key: string): number {
    setRoot(table, tries.put(rootOf(memory, next.root, table), leaf, key))
    retireReplaced()
    return leaf
  }

  function changeMap(table: number, key: string, change: (root: number) => { root: number; grown: number }): void {
    const hash = block.hashOf(key, seed)
    const root = rootOf(memory, next.root, table)
    const map = findLeaf(memory, root, key, hash)
    const changed = change(map === 0 ? 0 : block.mapRoot(memory, map))
    const size = (map === 0 ? 0 : block.mapSize(memory, map)) + changed.grown
    if (size === 0) {
      setRoot(table, tries.remove(root, key, hash))
      if (tries.replaced() !== 0) blocks.retire(tries.replaced())
      return
    }
    let leaf = map
    if (map === 0 || !blocks.isOwn(map)) {
      leaf = tries.leaf(key, hash, block.isMap, block.mapWords)
      setRoot(table, tries.put(root, leaf, key))
      if (tries.replaced() !== 0) blocks.retire(tries.replaced())
    }
    const value = block.valueWord(memory, leaf)
    memory.words[value] = changed.root
    memory.words[value + 1] = size
  }

  function wordsLeaf(key: string, words: readonly number[]): number {
    const leaf = tries.leaf(key, block.hashOf(key, seed), words.length * wordBytes, words.length)
    memory.words.set(words, block.valueWord(memory, leaf))
    return leaf
  }

  const changes: Transaction = Object.assign(createView(memory, next), {
    put(table: number, key: string, value: Uint8Array) {
      const leaf = tries.leaf(key, block.hashOf(key, seed), value.length, (value.length + 3) >>> 2)
      memory.bytes.set(value, block.valueWord(memory, leaf) * wordBytes)
      return insert(table, leaf, key)
    },
    putWords: (table: number, key: string, words: readonly number[]) => insert(table, wordsLeaf(key, words), key),
    putIn(table: number, key: string, innerKey: string, words: readonly number[]) {
      const leaf = wordsLeaf(innerKey, words)
      changeMap(table, key, (root) => {
        const now = tries.put(root, leaf, innerKey)
        return { root: now, grown: retireReplaced() ? 0 : 1 }
      })
      return leaf
    },
    remove(table: number, key: string) {
      setRoot(table, tries.remove(rootOf(memory, next.root, table), key, block.hashOf(key, seed)))
      return retireReplaced()
    },
    removeFrom(table: number, key: string, innerKey: string) {
      let found = false
      changeMapIfThere(table, key, (root) => {
        const now = tries.remove(root, innerKey, block.hashOf(innerKey, seed))
        found = retireReplaced()
        return { root: now, grown: found ? -1 : 0 }
      })
      return found
    },
  })

  function changeMapIfThere(table: number, key: string, change: (root: number) => { root: number; grown: number }) {
    const map = changes.find(table, key)
    if (map !== 0) changeMap(table, key, change)
  }

  /** A root of its own, with the tables as they were. */
  function begin(): void {
    const before = next.root
    next.root = blocks.allocate(2 + tables, block.kinds.raw)
    for (let table = 0; table < tables; table += 1) setRoot(table, rootOf(memory, before, table))
    if (before !== 0) blocks.retire(before)
  }

  return { changes, begin }
}
