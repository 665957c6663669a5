// Families of counters, gauges and histograms over a store that keeps their numbers. A series is looked up once and then costs
// one addition per event.
import type { Place } from './cells.ts'
import type { Family, FamilyOptions, FamilyShape, LabelValues, MetricFamilies } from './metrics.ts'
import { PlacedCounter, PlacedGauge, PlacedHistogram, type PlacedSeries } from './series.ts'

/** Keeps the numbers of series. A key is the label values, each with a NUL behind it. */
export interface SeriesStore {
  /** Throws when a family of that name exists. */
  declare(shape: FamilyShape): {
    open(key: string): Place
    close(key: string, place: Place): void
  }
}

/** How many numbers a series has: a histogram has one a bucket, one above them, and the sum. */
export function cellsOf({ type, bounds }: Pick<FamilyShape, 'type' | 'bounds'>): number {
  return type === 'histogram' ? bounds.length + 2 : 1
}

export function createFamilies(store: SeriesStore): MetricFamilies {
  function family<L extends string, S extends PlacedSeries>(
    options: FamilyOptions<L>,
    type: FamilyShape['type'],
    bounds: readonly number[],
    seriesOf: (place: Place) => S,
  ): Family<L, S> {
    const { name, help, labels: labelNames = [] } = options
    if (!/^[a-zA-Z_:][a-zA-Z0-9_:]*$/.test(name)) throw new Error(`invalid metric name '${name}'`)
    const shape: FamilyShape = { name, help, type, labelNames, bounds }
    const stored = store.declare(shape)
    const known = new Map<string, { readonly place: Place; readonly series: S }>()
    const keyOf = (labels: LabelValues<L>): string => {
      let key = ''
      for (const label of labelNames) key += `${withoutNul(labels[label])}\u0000`
      return key
    }
    function remove(key: string): void {
      const found = known.get(key)
      if (found === undefined) return
      known.delete(key)
      found.series.detach()
      stored.close(key, found.place)
    }
    return {
      name,
      with(labels) {
        const key = keyOf(labels)
        const found = known.get(key)
        if (found !== undefined) return found.series
        const place = stored.open(key)
        const series = seriesOf(place)
        known.set(key, { place, series })
        return series
      },
      remove: (labels) => remove(keyOf(labels)),
      clear() {
        for (const key of [...known.keys()]) remove(key)
      },
    }
  }

  return {
    counter: (options) => family(options, 'counter', [], (place) => new PlacedCounter(place)),
    gauge: (options) => family(options, 'gauge', [], (place) => new PlacedGauge(place)),
    histogram: (options) =>
      family(options, 'histogram', options.bounds, (place) => new PlacedHistogram(place, options.bounds)),
  }
}

/** A NUL ends a value in a key: one within a value, as a peer may send it, must not move the values behind it. */
const withoutNul = (value: string): string => (value.includes('\u0000') ? value.replaceAll('\u0000', '\ufffd') : value)
