// The metrics of a worker thread: counted in shared memory, so that the main thread reads them without asking.
import type { MessagePort } from 'node:worker_threads'
import { createCells, type Place } from './cells.ts'
import { cellsOf, createFamilies } from './families.ts'
import type { FamilyShape, MetricFamilies } from './metrics.ts'

/** What a worker tells of its metrics, each once. Families and chunks are numbered in the order they are told. */
export type ThreadMetricsNews =
  | { readonly kind: 'family'; readonly shape: FamilyShape }
  | { readonly kind: 'chunk'; readonly cells: Float64Array }
  | {
      readonly kind: 'opened'
      readonly family: number
      readonly key: string
      readonly chunk: number
      readonly at: number
    }
  | {
      readonly kind: 'closed'
      readonly family: number
      readonly key: string
      readonly chunk: number
      readonly at: number
    }

/** What the main thread says: nobody reads this place any more. */
export interface PlaceFreed {
  readonly chunk: number
  readonly at: number
  readonly count: number
}

/**
 * Metrics of this thread; `port` is the other end of the one that the main thread's registry was given by `addThread`. A new series is told
 * at once and only then, so that nothing that was ever counted depends on this thread's end. The port does not keep the thread running.
 */
export function createThreadMetrics(port: MessagePort): MetricFamilies {
  const tell = (news: ThreadMetricsNews): void => port.postMessage(news)
  const chunks: Float64Array[] = []
  const places = createCells(
    (bytes) => new SharedArrayBuffer(bytes),
    (cells) => {
      chunks.push(cells)
      tell({ kind: 'chunk', cells })
    },
  )
  port.on('message', ({ chunk, at, count }: PlaceFreed) => {
    const cells = chunks[chunk]
    if (cells !== undefined) places.give({ chunk, at, cells }, count)
  })
  port.unref()
  const names = new Set<string>()
  return createFamilies({
    declare(shape) {
      if (names.has(shape.name)) throw new Error(`metric ${shape.name} is registered twice`)
      const family = names.size
      names.add(shape.name)
      tell({ kind: 'family', shape })
      const count = cellsOf(shape)
      return {
        open(key) {
          const place: Place = places.take(count)
          tell({ kind: 'opened', family, key, chunk: place.chunk, at: place.at })
          return place
        },
        // The place is taken again only when the main thread has stopped reading it as this series.
        close: (key, { chunk, at }) => tell({ kind: 'closed', family, key, chunk, at }),
      }
    },
  })
}
