// Reading one generation: tables of keys, each with a value or with a map of its own.
import * as block from './block.ts'
import { findLeaf, leavesOf } from './find.ts'
import { header, type Memory, wordBytes } from './memory.ts'

/**
 * A leaf is named by a number that is only good until the view moves to another generation; 0 is no leaf. `generationOf` tells
 * which generation wrote it: a place that is used again has another.
 */
export interface TableView {
  /** Moves on with each commit (the writer's) or with `advance` (a reader's). */
  readonly generation: number
  find(table: number, key: string): number
  /** In the map of a leaf; 0 when the leaf is 0. */
  findIn(mapLeaf: number, key: string): number
  leaves(table: number): readonly number[]
  leavesIn(mapLeaf: number): readonly number[]
  /** Those of the map that were put there after a generation. */
  leavesSince(mapLeaf: number, generation: number): readonly number[]
  /** How many leaves the map of a leaf has. */
  sizeOf(mapLeaf: number): number
  generationOf(leaf: number): number
  keyOf(leaf: number): string
  /** All of the memory: a value is the bytes from `valueStart` on. */
  readonly bytes: Buffer
  valueStart(leaf: number): number
  valueLength(leaf: number): number
  /** A value of whole words, by index. */
  wordOf(leaf: number, index: number): number
}

/** Where a view stands: which root it reads. */
export interface Standpoint {
  readonly generation: number
  readonly root: number
}

/** The roots of the tables stand behind the two words that every block begins with. */
export const rootOf = (memory: Memory, root: number, table: number): number =>
  root === 0 ? 0 : block.wordAt(memory, root + 2 + table)

export function createView(memory: Memory, at: Standpoint): TableView {
  const seed = block.wordAt(memory, header.hashSeed)
  return {
    get generation() {
      return at.generation
    },
    get bytes() {
      return memory.bytes
    },
    find: (table, key) => findLeaf(memory, rootOf(memory, at.root, table), key, block.hashOf(key, seed)),
    findIn: (mapLeaf, key) =>
      mapLeaf === 0 ? 0 : findLeaf(memory, block.mapRoot(memory, mapLeaf), key, block.hashOf(key, seed)),
    leaves: (table) => leavesOf(memory, rootOf(memory, at.root, table)),
    leavesIn: (mapLeaf) => (mapLeaf === 0 ? [] : leavesOf(memory, block.mapRoot(memory, mapLeaf))),
    leavesSince: (mapLeaf, generation) =>
      mapLeaf === 0 ? [] : leavesOf(memory, block.mapRoot(memory, mapLeaf), generation),
    sizeOf: (mapLeaf) => (mapLeaf === 0 ? 0 : block.mapSize(memory, mapLeaf)),
    generationOf: (leaf) => block.generationOf(memory, leaf),
    keyOf: (leaf) => block.keyOf(memory, leaf),
    valueStart: (leaf) => block.valueWord(memory, leaf) * wordBytes,
    valueLength: (leaf) => block.valueBytes(memory, leaf),
    wordOf: (leaf, index) => block.wordAt(memory, block.valueWord(memory, leaf) + index),
  }
}
