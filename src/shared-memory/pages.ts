// Runs of pages: free ones are kept in order and joined with their neighbours; what is at the end becomes unused again.

export interface Pages {
  /** The first of that many pages in a row. */
  take(count: number): number
  /** They are others' only after `settle`. */
  giveBack(first: number, count: number): void
  settle(): void
}

interface Run {
  first: number
  count: number
}

/** `extend` makes room up to a page, or throws; then nothing has changed. */
export function createPages(firstPage: number, extend: (end: number) => void): Pages {
  const free: Run[] = []
  let given: Run[] = []
  let end = firstPage

  function join(first: number, count: number): void {
    let index = positionOf(free, first)
    const before = free[index - 1]
    const run = before !== undefined && before.first + before.count === first ? before : { first, count: 0 }
    run.count += count
    if (run !== before) free.splice(index, 0, run)
    else index -= 1
    const after = free[index + 1]
    if (after !== undefined && run.first + run.count === after.first) {
      run.count += after.count
      free.splice(index + 1, 1)
    }
    if (run.first + run.count !== end) return
    end = run.first
    free.splice(index, 1)
  }

  return {
    take(count) {
      const index = free.findIndex((run) => run.count >= count)
      const run = free[index]
      if (run === undefined) {
        extend(end + count)
        end += count
        return end - count
      }
      const { first } = run
      run.first += count
      run.count -= count
      if (run.count === 0) free.splice(index, 1)
      return first
    },
    giveBack: (first, count) => void given.push({ first, count }),
    settle() {
      for (const { first, count } of given) join(first, count)
      given = []
    },
  }
}

/** Where a run that begins at the page belongs. */
function positionOf(free: readonly Run[], first: number): number {
  let low = 0
  let high = free.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((free[middle] as Run).first < first) low = middle + 1
    else high = middle
  }
  return low
}
