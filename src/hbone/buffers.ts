// Large buffers that are used again: allocating and freeing them for every batch of bytes would keep the collector busy.

export const batchBytes = 256 * 1024
const mostKept = 8
const kept: Buffer[] = []

/** A buffer of `batchBytes`, with whatever was in it before. */
export function acquireBatch(): Buffer {
  return kept.pop() ?? Buffer.allocUnsafeSlow(batchBytes)
}

/** Gives back a buffer that nobody uses any more. */
export function releaseBatch(buffer: Buffer): void {
  if (kept.length < mostKept) kept.push(buffer)
}

export const smallBytes = 16 * 1024
const mostSmallKept = 64
const smallKept: Buffer[] = []

/** A buffer of `smallBytes`, for what would hold on to a large one for as long as its socket is slow. */
export function acquireSmall(): Buffer {
  return smallKept.pop() ?? Buffer.allocUnsafeSlow(smallBytes)
}

export function releaseSmall(buffer: Buffer): void {
  if (smallKept.length < mostSmallKept) smallKept.push(buffer)
}
