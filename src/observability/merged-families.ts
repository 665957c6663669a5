// Every family of a process with the places where its threads keep the numbers of each series.
import type { Place } from './cells.ts'
import { cellsOf } from './families.ts'
import type { FamilyShape, LiveFamily, SeriesSnapshot } from './metrics.ts'

/** A thread that counts; compared by identity. */
export type Source = object

export interface MergedFamily {
  /** Numbers a series has. */
  readonly cells: number
  /** From now on the place is part of the series. */
  hold(key: string, source: Source, place: Pick<Place, 'cells' | 'at'>): void
  /** The source removed the series: it is gone once nobody holds it; until then a counter keeps what this source counted. */
  release(key: string, source: Source): void
}

export interface MergedFamilies {
  /** The family of this name, new or known. Throws when it is known with another type, labels or bounds. */
  declare(shape: FamilyShape): MergedFamily
  /** The source is no more: its counters and histograms stay counted, its gauges are dropped. */
  retire(source: Source): void
  read(): Iterable<LiveFamily>
}

interface Holder {
  readonly source: Source
  readonly cells: Float64Array
  readonly at: number
}

interface Series {
  holders: readonly Holder[]
  /** What threads that are no more counted. */
  retired: Float64Array | undefined
}

export function createMergedFamilies(): MergedFamilies {
  const families = new Map<string, { readonly shape: FamilyShape; readonly series: Map<string, Series> }>()

  function letGo(family: FamilyShape, series: Series, source: Source): void {
    const holder = series.holders.find((one) => one.source === source)
    if (holder === undefined) return
    series.holders = series.holders.filter((one) => one !== holder)
    if (family.type === 'gauge') return
    const sum = new Float64Array(cellsOf(family))
    addTo(sum, holder.cells, holder.at)
    if (series.retired !== undefined) addTo(sum, series.retired, 0)
    series.retired = sum
  }

  return {
    declare(shape) {
      const known = families.get(shape.name)
      if (known !== undefined && !isSameShape(known.shape, shape)) {
        throw new Error(`metric ${shape.name} is registered with different types, labels or bounds`)
      }
      const family = known ?? { shape, series: new Map<string, Series>() }
      families.set(shape.name, family)
      return {
        cells: cellsOf(shape),
        hold(key, source, { cells, at }) {
          const holder = { source, cells, at }
          const series = family.series.get(key)
          if (series === undefined) family.series.set(key, { holders: [holder], retired: undefined })
          else series.holders = [...series.holders, holder]
        },
        release(key, source) {
          const series = family.series.get(key)
          if (series === undefined) return
          letGo(shape, series, source)
          if (series.holders.length === 0) family.series.delete(key)
        },
      }
    },
    retire(source) {
      for (const { shape, series } of families.values()) {
        for (const [key, one] of series) {
          letGo(shape, one, source)
          if (one.holders.length === 0 && one.retired === undefined) series.delete(key)
        }
      }
    },
    *read() {
      for (const { shape, series } of families.values()) yield { ...shape, series: readSeries(shape, series) }
    },
  }
}

function* readSeries(shape: FamilyShape, all: ReadonlyMap<string, Series>): Generator<SeriesSnapshot> {
  const sum = new Float64Array(cellsOf(shape))
  for (const [key, { holders, retired }] of all) {
    sum.fill(0)
    for (const { cells, at } of holders) addTo(sum, cells, at)
    if (retired !== undefined) addTo(sum, retired, 0)
    const labels = key.split('\u0000')
    labels.pop()
    const value = sum[sum.length - 1] ?? 0
    yield shape.type === 'histogram' ? { labels, value, buckets: [...sum.subarray(0, -1)] } : { labels, value }
  }
}

function addTo(sum: Float64Array, cells: Float64Array, at: number): void {
  for (let index = 0; index < sum.length; index += 1) sum[index] = (sum[index] ?? 0) + (cells[at + index] ?? 0)
}

function isSameShape(a: FamilyShape, b: FamilyShape): boolean {
  const same = <T>(one: readonly T[], other: readonly T[]): boolean =>
    one.length === other.length && one.every((value, index) => value === other[index])
  return a.type === b.type && same(a.labelNames, b.labelNames) && same(a.bounds, b.bounds)
}
