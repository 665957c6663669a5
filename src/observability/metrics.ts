// A registry of counters, gauges and histograms. A series is looked up once and then costs one addition per event.

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

export interface SeriesSnapshot {
  readonly labels: readonly string[]
  readonly value: number
  /** Histograms only: counts per bucket (not cumulative, the last one above every bound). `value` is the sum. */
  readonly buckets?: readonly number[]
}

export interface FamilySnapshot {
  readonly name: string
  readonly help: string
  readonly type: 'counter' | 'gauge' | 'histogram'
  readonly labelNames: readonly string[]
  readonly bounds: readonly number[]
  readonly series: readonly SeriesSnapshot[]
}

export interface MetricsRegistry {
  counter<L extends string = never>(options: FamilyOptions<L>): Counter<L>
  gauge<L extends string = never>(options: FamilyOptions<L>): Gauge<L>
  histogram<L extends string = never>(options: FamilyOptions<L> & { readonly bounds: readonly number[] }): Histogram<L>
  /** Calls `collect` before each snapshot, for values that are read rather than counted. Returns the function that ends it. */
  beforeCollect(collect: () => void): () => void
  snapshot(): readonly FamilySnapshot[]
}

interface Cell {
  readonly labels: readonly string[]
  value: number
  buckets: number[] | undefined
}

export function createMetricsRegistry(): MetricsRegistry {
  const families = new Map<string, () => FamilySnapshot>()
  const collectors = new Set<() => void>()

  function family<L extends string, S>(
    options: FamilyOptions<L>,
    type: FamilySnapshot['type'],
    bounds: readonly number[],
    open: (cell: Cell) => S,
  ): Family<L, S> {
    const { name, help, labels: labelNames = [] } = options
    if (!/^[a-zA-Z_:][a-zA-Z0-9_:]*$/.test(name)) throw new Error(`invalid metric name '${name}'`)
    if (families.has(name)) throw new Error(`metric ${name} is registered twice`)
    const cells = new Map<string, { readonly cell: Cell; readonly series: S }>()
    const keyOf = (labels: LabelValues<L>): string => {
      let key = ''
      for (const label of labelNames) key += `${labels[label]}\u0000`
      return key
    }
    families.set(name, () => ({
      name,
      help,
      type,
      labelNames,
      bounds,
      series: [...cells.values()].map(({ cell }) => cell),
    }))
    return {
      name,
      with(labels) {
        const key = keyOf(labels)
        const known = cells.get(key)
        if (known !== undefined) return known.series
        const cell: Cell = {
          labels: labelNames.map((label) => labels[label]),
          value: 0,
          buckets: type === 'histogram' ? new Array<number>(bounds.length + 1).fill(0) : undefined,
        }
        const series = open(cell)
        cells.set(key, { cell, series })
        return series
      },
      remove: (labels) => void cells.delete(keyOf(labels)),
      clear: () => cells.clear(),
    }
  }

  return {
    counter: (options) =>
      family(options, 'counter', [], (cell) => ({
        inc(by = 1) {
          if (by > 0) cell.value += by
        },
      })),
    gauge: (options) =>
      family(options, 'gauge', [], (cell) => ({
        set(value) {
          cell.value = value
        },
        inc(by = 1) {
          cell.value += by
        },
        dec(by = 1) {
          cell.value -= by
        },
      })),
    histogram: (options) =>
      family(options, 'histogram', options.bounds, (cell) => ({
        observe(value) {
          const index = options.bounds.findIndex((bound) => value <= bound)
          const at = index < 0 ? options.bounds.length : index
          if (cell.buckets !== undefined) cell.buckets[at] = (cell.buckets[at] ?? 0) + 1
          cell.value += value
        },
      })),
    beforeCollect(collect) {
      collectors.add(collect)
      return () => void collectors.delete(collect)
    },
    snapshot() {
      for (const collect of collectors) collect()
      return [...families.values()].map((read) => read()).filter(({ series }) => series.length > 0)
    },
  }
}
