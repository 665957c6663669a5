// Brings a wave to every connection, in slices, so that many clients do not keep everything else waiting.

export interface FanOut<W> {
  /** Some waves are still going out. */
  readonly isBusy: boolean
  add(wave: W): void
  close(): void
}

/** One wave after the other, each to those who are connected when it begins. `work` must not throw. */
export function createFanOut<T, W>(
  receivers: () => Iterable<T>,
  work: (receiver: T, wave: W) => void,
  sliceMs = 10,
): FanOut<W> {
  const waves: W[] = []
  let under: Iterator<T> | undefined
  let planned: NodeJS.Immediate | undefined

  function run(): void {
    planned = undefined
    const until = performance.now() + sliceMs
    for (let wave = waves[0]; wave !== undefined; wave = waves[0]) {
      under ??= [...receivers()][Symbol.iterator]()
      for (let next = under.next(); !next.done; next = under.next()) {
        work(next.value, wave)
        if (performance.now() < until) continue
        planned = setImmediate(run)
        return
      }
      under = undefined
      waves.shift()
    }
  }

  return {
    get isBusy() {
      return waves.length > 0
    },
    add(wave) {
      waves.push(wave)
      if (planned === undefined) run()
    },
    close() {
      clearImmediate(planned)
      planned = undefined
      waves.length = 0
      under = undefined
    },
  }
}
