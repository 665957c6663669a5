// The metrics of a process: what its main thread counts, and what its worker threads count in shared memory, summed when it is read.
import type { MessagePort } from 'node:worker_threads'
import { createCells } from './cells.ts'
import { createFamilies } from './families.ts'
import { createMergedFamilies } from './merged-families.ts'
import { followThreadMetrics } from './thread-metrics-link.ts'

export type LabelValues<L extends string> = Readonly<Record<L, string>>

export interface CounterSeries {
  inc(by?: number): void
}
export interface GaugeSeries {
  set(value: number): void
  inc(by?: number): void
  dec(by?: number): void
}
export interface HistogramSeries {
  observe(value: number): void
}

/** A family of series: `with` returns the series of these label values, creating it (at zero) the first time. */
export interface Family<L extends string, S> {
  readonly name: string
  with(labels: LabelValues<L>): S
  /** Takes the series out of the exposition. */
  remove(labels: LabelValues<L>): void
  clear(): void
}

export type Counter<L extends string = never> = Family<L, CounterSeries>
export type Gauge<L extends string = never> = Family<L, GaugeSeries>
export type Histogram<L extends string = never> = Family<L, HistogramSeries>

export interface FamilyOptions<L extends string> {
  /** The name as written in the text format, with `_total` where it has one. */
  readonly name: string
  readonly help: string
  readonly labels?: readonly L[]
}

export interface FamilyShape {
  readonly name: string
  readonly help: string
  readonly type: 'counter' | 'gauge' | 'histogram'
  readonly labelNames: readonly string[]
  /** Upper bounds of a histogram's buckets, ascending. */
  readonly bounds: readonly number[]
}

export interface SeriesSnapshot {
  readonly labels: readonly string[]
  readonly value: number
  /** Histograms only: counts per bucket (not cumulative, the last one above every bound). `value` is the sum. */
  readonly buckets?: readonly number[]
}

export interface FamilySnapshot extends FamilyShape {
  readonly series: readonly SeriesSnapshot[]
}

/** A family whose series are read one after another, each with its value at that moment. */
export interface LiveFamily extends FamilyShape {
  readonly series: Iterable<SeriesSnapshot>
}

/** Where code that counts registers what it counts: of the main thread or of a worker. */
export interface MetricFamilies {
  counter<L extends string = never>(options: FamilyOptions<L>): Counter<L>
  gauge<L extends string = never>(options: FamilyOptions<L>): Gauge<L>
  histogram<L extends string = never>(options: FamilyOptions<L> & { readonly bounds: readonly number[] }): Histogram<L>
}

export interface MetricsRegistry extends MetricFamilies {
  /** Calls `collect` before each reading, for values that are read rather than counted. Returns the function that ends that. */
  beforeCollect(collect: () => void): () => void
  /**
   * Takes up what a worker counts; `port` is the other end of the one given to `createThreadMetrics`. Values of equal labels are summed
   * over the threads. Once the thread has ended (which closes the port) or the link is disposed of, its counters and histograms stay
   * counted and its gauges are gone. Throws when the thread gives a family another type, labels or bounds than it has here.
   */
  addThread(port: MessagePort): Disposable
  snapshot(): readonly FamilySnapshot[]
  /** What `snapshot` gives, read piece by piece: for exposing much without holding up the process. */
  collect(): Iterable<LiveFamily>
}

export function createMetricsRegistry(): MetricsRegistry {
  const merged = createMergedFamilies()
  const collectors = new Set<() => void>()
  const own = {}
  const cells = createCells((bytes) => new ArrayBuffer(bytes))
  const registered = new Set<string>()
  const families = createFamilies({
    declare(shape) {
      if (registered.has(shape.name)) throw new Error(`metric ${shape.name} is registered twice`)
      registered.add(shape.name)
      const family = merged.declare(shape)
      return {
        open(key) {
          const place = cells.take(family.cells)
          family.hold(key, own, place)
          return place
        },
        close(key, place) {
          family.release(key, own)
          cells.give(place, family.cells)
        },
      }
    },
  })
  function collect(): Iterable<LiveFamily> {
    for (const prepare of collectors) prepare()
    return merged.read()
  }
  return {
    ...families,
    beforeCollect(prepare) {
      collectors.add(prepare)
      return () => void collectors.delete(prepare)
    },
    addThread: (port) => followThreadMetrics(port, merged),
    collect,
    snapshot: () =>
      [...collect()]
        .map((family) => ({ ...family, series: [...family.series] }))
        .filter(({ series }) => series.length > 0),
  }
}
