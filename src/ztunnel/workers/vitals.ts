// Signs of life of the workers in shared memory: who reads them need not ask, and a thread that is stuck cannot answer.

const beatMs = 250
/** A worker that has not run its event loop for this long serves nobody. */
const stuckAfterMs = 1_000

/** One number a worker: when its event loop last ran, in microseconds of the machine's monotonic clock. 0: not yet. */
export type Vitals = BigInt64Array<SharedArrayBuffer>

export function createVitals(workers: number): Vitals {
  return new BigInt64Array(new SharedArrayBuffer(workers * BigInt64Array.BYTES_PER_ELEMENT))
}

/** Beats until it is stopped. */
export function startBeating(vitals: Vitals, worker: number): () => void {
  const beat = (): void => void Atomics.store(vitals, worker, microseconds())
  beat()
  const timer = setInterval(beat, beatMs)
  return () => clearInterval(timer)
}

/** The workers whose event loop stands still. */
export function stuckWorkers(vitals: Vitals): readonly number[] {
  const oldest = microseconds() - BigInt(stuckAfterMs) * 1000n
  return [...vitals.keys()].filter((worker) => {
    const last = Atomics.load(vitals, worker)
    return last !== 0n && last < oldest
  })
}

/** The same on every thread, and never set back. */
const microseconds = (): bigint => process.hrtime.bigint() / 1000n
