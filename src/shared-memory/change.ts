// Changing a trie without touching what others read: nodes on the way to a change are copied, once a transaction.
import {
  branchWords,
  bucketWords,
  hasKey,
  isMapLeaf,
  isNarrow,
  keyWords,
  kindOf,
  kinds,
  leafWords,
  mapRoot,
  wordAt,
  writeKey,
} from './block.ts'
import type { BlockStore } from './blocks.ts'
import { bitCount, bitOf, bitsPerLevel, indexOf, leavesOf } from './find.ts'
import type { Memory } from './memory.ts'

export interface TrieChanges {
  /** A leaf that stands nowhere yet; its value is for the caller to write. `isMap` bytes: the leaf of a map. */
  leaf(key: string, hash: number, bytes: number, words: number): number
  /** Puts the leaf in place of the one with its key. Returns the new root; `replaced` then tells what was there. */
  put(root: number, leaf: number, key: string): number
  /** Takes the leaf with the key away. Returns the new root; `replaced` then tells what was there. */
  remove(root: number, key: string, hash: number): number
  /** The leaf the last call took out of the trie, 0 for none. It is for the caller to retire. */
  replaced(): number
  /** Retires a whole trie. */
  dispose(root: number): void
}

export function createTrieChanges(memory: Memory, blocks: BlockStore): TrieChanges {
  let replaced = 0

  const childAt = (node: number, index: number): number => wordAt(memory, node + branchWords + index)

  function branchOf(bitmap: number, count: number): number {
    const branch = blocks.allocate(branchWords + count, kinds.branch)
    memory.words[branch + 2] = bitmap
    return branch
  }

  /** The smallest tree in which two nodes with different hashes stand apart. */
  function split(a: number, hashA: number, b: number, hashB: number, shift: number): number {
    const bitA = bitOf(hashA, shift)
    const bitB = bitOf(hashB, shift)
    if (bitA === bitB) {
      const child = split(a, hashA, b, hashB, shift + bitsPerLevel)
      const branch = branchOf(bitA, 1)
      memory.words[branch + branchWords] = child
      return branch
    }
    const branch = branchOf(bitA | bitB, 2)
    const aFirst = bitA >>> 0 < bitB >>> 0
    memory.words[branch + branchWords] = aFirst ? a : b
    memory.words[branch + branchWords + 1] = aFirst ? b : a
    return branch
  }

  function addChild(branch: number, bitmap: number, bit: number, child: number): number {
    const count = bitCount(bitmap)
    const index = indexOf(bitmap, bit)
    const inPlace = blocks.isOwn(branch) && blocks.capacity(branch) > branchWords + count
    const target = inPlace ? branch : branchOf(0, count + 1)
    const { words } = memory
    const from = branch + branchWords
    words.copyWithin(target + branchWords + index + 1, from + index, from + count)
    if (!inPlace) {
      words.copyWithin(target + branchWords, from, from + index)
      blocks.retire(branch)
    }
    words[target + 2] = bitmap | bit
    words[target + branchWords + index] = child
    return target
  }

  function setChild(branch: number, index: number, child: number): number {
    let target = branch
    if (!blocks.isOwn(branch)) {
      const bitmap = wordAt(memory, branch + 2)
      const count = bitCount(bitmap)
      target = branchOf(bitmap, count)
      memory.words.copyWithin(target + branchWords, branch + branchWords, branch + branchWords + count)
      blocks.retire(branch)
    }
    memory.words[target + branchWords + index] = child
    return target
  }

  /** A branch is never left with a leaf or a bucket as its only child. */
  function removeChild(branch: number, bit: number): number {
    const bitmap = wordAt(memory, branch + 2)
    const count = bitCount(bitmap)
    const index = indexOf(bitmap, bit)
    if (count === 1) {
      blocks.retire(branch)
      return 0
    }
    if (count === 2) {
      const left = childAt(branch, 1 - index)
      if (kindOf(memory, left) !== kinds.branch) {
        blocks.retire(branch)
        return left
      }
    }
    const from = branch + branchWords
    if (blocks.isOwn(branch)) {
      memory.words.copyWithin(from + index, from + index + 1, from + count)
      memory.words[branch + 2] = bitmap & ~bit
      return branch
    }
    const target = branchOf(bitmap & ~bit, count - 1)
    memory.words.copyWithin(target + branchWords, from, from + index)
    memory.words.copyWithin(target + branchWords + index, from + index + 1, from + count)
    blocks.retire(branch)
    return target
  }

  function bucketOf(hash: number, leaves: readonly number[]): number {
    const bucket = blocks.allocate(bucketWords + leaves.length, kinds.bucket)
    memory.words[bucket + 2] = hash
    memory.words[bucket + 3] = leaves.length
    memory.words.set(leaves, bucket + bucketWords)
    return bucket
  }

  /** The leaves of a leaf or a bucket. */
  const leavesAt = (node: number): number[] => (kindOf(memory, node) === kinds.leaf ? [node] : leavesOf(memory, node))

  function insert(node: number, leaf: number, hash: number, key: string, shift: number): number {
    if (node === 0) return leaf
    const kind = kindOf(memory, node)
    if (kind === kinds.branch) {
      const bitmap = wordAt(memory, node + 2)
      const bit = bitOf(hash, shift)
      if ((bitmap & bit) === 0) return addChild(node, bitmap, bit, leaf)
      const index = indexOf(bitmap, bit)
      const child = childAt(node, index)
      const now = insert(child, leaf, hash, key, shift + bitsPerLevel)
      return now === child ? node : setChild(node, index, now)
    }
    const there = wordAt(memory, node + 2)
    if (there !== hash) return split(node, there, leaf, hash, shift)
    const leaves = leavesAt(node)
    const same = leaves.findIndex((one) => hasKey(memory, one, key))
    if (same >= 0) replaced = leaves[same] as number
    if (same >= 0) leaves[same] = leaf
    else leaves.push(leaf)
    if (kind === kinds.bucket) blocks.retire(node)
    return leaves.length === 1 ? leaf : bucketOf(hash, leaves)
  }

  function removeBelow(node: number, hash: number, key: string, shift: number): number {
    if (node === 0) return 0
    if (kindOf(memory, node) === kinds.branch) {
      const bitmap = wordAt(memory, node + 2)
      const bit = bitOf(hash, shift)
      if ((bitmap & bit) === 0) return node
      const index = indexOf(bitmap, bit)
      const child = childAt(node, index)
      const now = removeBelow(child, hash, key, shift + bitsPerLevel)
      if (now === child) return node
      if (now === 0) return removeChild(node, bit)
      if (bitCount(bitmap) === 1 && kindOf(memory, now) !== kinds.branch) {
        blocks.retire(node)
        return now
      }
      return setChild(node, index, now)
    }
    if (wordAt(memory, node + 2) !== hash) return node
    const leaves = leavesAt(node)
    const same = leaves.findIndex((one) => hasKey(memory, one, key))
    if (same < 0) return node
    replaced = leaves[same] as number
    leaves.splice(same, 1)
    if (kindOf(memory, node) === kinds.bucket) blocks.retire(node)
    return leaves.length > 1 ? bucketOf(hash, leaves) : (leaves[0] ?? 0)
  }

  return {
    leaf(key, hash, bytes, words) {
      const isWide = !isNarrow(key)
      const leaf = blocks.allocate(leafWords + keyWords(key.length, isWide) + words, kinds.leaf)
      memory.words[leaf + 2] = hash
      memory.words[leaf + 3] = key.length * 2 + (isWide ? 1 : 0)
      memory.words[leaf + 4] = bytes
      writeKey(memory, leaf, key, isWide)
      return leaf
    },
    put(root, leaf, key) {
      replaced = 0
      return insert(root, leaf, wordAt(memory, leaf + 2), key, 0)
    },
    remove(root, key, hash) {
      replaced = 0
      return removeBelow(root, hash, key, 0)
    },
    replaced: () => replaced,
    dispose,
  }

  function dispose(root: number): void {
    if (root === 0) return
    const kind = kindOf(memory, root)
    if (kind === kinds.leaf) {
      if (isMapLeaf(memory, root)) dispose(mapRoot(memory, root))
    } else {
      const isBranch = kind === kinds.branch
      const first = root + (isBranch ? branchWords : bucketWords)
      const count = isBranch ? bitCount(wordAt(memory, root + 2)) : wordAt(memory, root + 3)
      for (let index = 0; index < count; index += 1) dispose(wordAt(memory, first + index))
    }
    blocks.retire(root)
  }
}
