// Reading a trie: a branch takes five bits of the key's hash, a leaf stands as high as its hash is the only one.
import { branchWords, bucketWords, generationOf, hasKey, kindOf, kinds, wordAt } from './block.ts'
import type { Memory } from './memory.ts'

export const bitsPerLevel = 5

/** Which of a branch's children a hash leads to, as a bit. */
export const bitOf = (hash: number, shift: number): number => 1 << ((hash >>> shift) & 31)

/** How many of the children come before the one of the bit. */
export const indexOf = (bitmap: number, bit: number): number => bitCount(bitmap & (bit - 1))

export function bitCount(bits: number): number {
  let count = bits - ((bits >>> 1) & 0x55555555)
  count = (count & 0x33333333) + ((count >>> 2) & 0x33333333)
  return Math.imul((count + (count >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24
}

/** The leaf with the key below a node, 0 without one. */
export function findLeaf(memory: Memory, root: number, key: string, hash: number): number {
  let node = root
  for (let shift = 0; node !== 0; shift += bitsPerLevel) {
    const kind = kindOf(memory, node)
    if (kind === kinds.branch) {
      const bitmap = wordAt(memory, node + 2)
      const bit = bitOf(hash, shift)
      if ((bitmap & bit) === 0) return 0
      node = wordAt(memory, node + branchWords + indexOf(bitmap, bit))
      continue
    }
    if (wordAt(memory, node + 2) !== hash) return 0
    if (kind === kinds.leaf) return hasKey(memory, node, key) ? node : 0
    const count = wordAt(memory, node + 3)
    for (let index = 0; index < count; index += 1) {
      const leaf = wordAt(memory, node + bucketWords + index)
      if (hasKey(memory, leaf, key)) return leaf
    }
    return 0
  }
  return 0
}

/**
 * The leaves below a node that were made after a generation, 0 for all; in no order that means anything. What is older and still there
 * was there then: nothing below an older node has changed since.
 */
export function leavesOf(memory: Memory, root: number, since = 0): number[] {
  const leaves: number[] = []
  const open = root === 0 ? [] : [root]
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    if (since > 0 && generationOf(memory, node) <= since) continue
    const kind = kindOf(memory, node)
    if (kind === kinds.leaf) {
      leaves.push(node)
      continue
    }
    const isBranch = kind === kinds.branch
    const first = node + (isBranch ? branchWords : bucketWords)
    const count = isBranch ? bitCount(wordAt(memory, node + 2)) : wordAt(memory, node + 3)
    for (let index = 0; index < count; index += 1) open.push(wordAt(memory, first + index))
  }
  return leaves
}
