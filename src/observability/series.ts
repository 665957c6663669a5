// The series that code counts with. Classes, as a method that finds its numbers on `this` costs half of a closure, and this is on
// every connection's path.
import type { Place } from './cells.ts'
import type { CounterSeries, GaugeSeries, HistogramSeries } from './metrics.ts'

/** A series that can be cut off from its place, when that becomes another's. */
export interface PlacedSeries {
  /** From now on it writes where nobody reads. */
  detach(): void
}

export class PlacedCounter implements CounterSeries, PlacedSeries {
  private cells: Float64Array
  private at: number

  constructor({ cells, at }: Place) {
    this.cells = cells
    this.at = at
  }

  inc(by = 1): void {
    if (by > 0) this.cells[this.at] = (this.cells[this.at] ?? 0) + by
  }

  detach(): void {
    this.cells = new Float64Array(1)
    this.at = 0
  }
}

export class PlacedGauge implements GaugeSeries, PlacedSeries {
  private cells: Float64Array
  private at: number

  constructor({ cells, at }: Place) {
    this.cells = cells
    this.at = at
  }

  set(value: number): void {
    this.cells[this.at] = value
  }

  inc(by = 1): void {
    this.cells[this.at] = (this.cells[this.at] ?? 0) + by
  }

  dec(by = 1): void {
    this.cells[this.at] = (this.cells[this.at] ?? 0) - by
  }

  detach(): void {
    this.cells = new Float64Array(1)
    this.at = 0
  }
}

/** One number a bucket, one above them, and the sum. */
export class PlacedHistogram implements HistogramSeries, PlacedSeries {
  private cells: Float64Array
  private at: number
  private readonly bounds: readonly number[]

  constructor({ cells, at }: Place, bounds: readonly number[]) {
    this.cells = cells
    this.at = at
    this.bounds = bounds
  }

  observe(value: number): void {
    const { cells, bounds } = this
    let index = 0
    while (index < bounds.length && !(value <= (bounds[index] ?? 0))) index += 1
    const bucket = this.at + index
    const sum = this.at + bounds.length + 1
    cells[bucket] = (cells[bucket] ?? 0) + 1
    cells[sum] = (cells[sum] ?? 0) + value
  }

  detach(): void {
    this.cells = new Float64Array(this.bounds.length + 2)
    this.at = 0
  }
}
