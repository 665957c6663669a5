// The blocks of a trie in memory. Every block begins with a word of kind and size, and the generation that made it (its lower bits
// in the second word, its upper ones in the first).
import type { Memory } from './memory.ts'
import { wordBytes } from './memory.ts'

/** The two lowest bits of a block's first word; the next eight are the allocator's. */
export const kinds = { raw: 0, leaf: 1, branch: 2, bucket: 3 }
export const kindMask = 3

/** A branch has a bit for each of 32 children that is there, then the children in order. */
export const branchWords = 3
/** A bucket has the hash its leaves share, their number, then the leaves. */
export const bucketWords = 4
/**
 * A leaf has its key's hash, the key's length (times two, plus one for keys of 2 bytes a unit), the bytes of its value, or `isMap`;
 * then the key's text, filled up to a word, then the value. The value of a map is its root and the number of its leaves.
 */
export const leafWords = 5
export const isMap = -1
export const mapWords = 2

/** Reads one word; the index is one of a block, so it is there. */
export const wordAt = (memory: Memory, index: number): number => memory.words[index] as number

export const kindOf = (memory: Memory, block: number): number => wordAt(memory, block) & kindMask

/** The generation that made the block. Together with the block's place it names its content for good. */
export const generationOf = (memory: Memory, block: number): number =>
  (wordAt(memory, block) >>> upperShift) * lowerLimit + wordAt(memory, block + 1)

/** Of a generation, what stands in a block's first word, and what in its second, which is never below zero. */
export const upperOf = (generation: number): number => Math.floor(generation / lowerLimit) << upperShift
export const lowerOf = (generation: number): number => generation % lowerLimit

const upperShift = 10
const lowerLimit = 2 ** 31

export const keyWords = (units: number, isWide: boolean): number => ((isWide ? units * 2 : units) + 3) >>> 2

/** The word at which the value of a leaf begins. */
export function valueWord(memory: Memory, leaf: number): number {
  const length = wordAt(memory, leaf + 3)
  return leaf + leafWords + keyWords(length >>> 1, (length & 1) === 1)
}

/** The value's bytes; 0 for maps. */
export const valueBytes = (memory: Memory, leaf: number): number => Math.max(0, wordAt(memory, leaf + 4))

export const isMapLeaf = (memory: Memory, leaf: number): boolean => wordAt(memory, leaf + 4) === isMap

export const mapRoot = (memory: Memory, leaf: number): number => wordAt(memory, valueWord(memory, leaf))

export const mapSize = (memory: Memory, leaf: number): number => wordAt(memory, valueWord(memory, leaf) + 1)

export function keyOf(memory: Memory, leaf: number): string {
  const length = wordAt(memory, leaf + 3)
  const from = (leaf + leafWords) * wordBytes
  return (length & 1) === 1
    ? memory.bytes.toString('utf16le', from, from + (length >>> 1) * 2)
    : memory.bytes.toString('latin1', from, from + (length >>> 1))
}

/** Whether each of the text's UTF-16 units fits into a byte. */
export function isNarrow(text: string): boolean {
  for (let index = 0; index < text.length; index += 1) if (text.charCodeAt(index) > 0xff) return false
  return true
}

export function writeKey(memory: Memory, leaf: number, key: string, isWide: boolean): void {
  memory.bytes.write(key, (leaf + leafWords) * wordBytes, isWide ? 'utf16le' : 'latin1')
}

export function hasKey(memory: Memory, leaf: number, key: string): boolean {
  const length = wordAt(memory, leaf + 3)
  const units = key.length
  if (length >>> 1 !== units) return false
  const { bytes } = memory
  const from = (leaf + leafWords) * wordBytes
  if ((length & 1) === 1) {
    for (let index = 0; index < units; index += 1) {
      const at = from + index * 2
      if (((bytes[at] as number) | ((bytes[at + 1] as number) << 8)) !== key.charCodeAt(index)) return false
    }
    return true
  }
  for (let index = 0; index < units; index += 1) if (bytes[from + index] !== key.charCodeAt(index)) return false
  return true
}

/** Of the text's UTF-16 units, mixed with a secret, so that nobody outside can choose names that collide. */
export function hashOf(text: string, seed: number): number {
  let hash = seed ^ text.length
  for (let index = 0; index < text.length; index += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x5b_d1_e9_95)
    hash ^= hash >>> 15
  }
  hash = Math.imul(hash ^ (hash >>> 16), 0x85_eb_ca_6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2_b2_ae_35 | 0)
  return hash ^ (hash >>> 16)
}
