// What the heap of a thread takes, measured by the thread itself.
import { getHeapStatistics } from 'node:v8'
import type { MetricFamilies } from './metrics.ts'

const samplingMs = 1000

/**
 * Starts measuring this thread; `worker` is the label of its series. `heap_used` falls when garbage is collected: what it does not fall
 * below is held. `external` are buffers and the like, which the heap's objects hold outside of it. The timer does not keep the thread running.
 */
export function startThreadMemoryMetrics(families: MetricFamilies, worker: string): Disposable {
  const memory = families.gauge({
    name: 'lateen_thread_memory_bytes',
    help: 'Memory that the JavaScript heap of the thread takes, by kind',
    labels: ['worker', 'kind'],
  })
  const of = (kind: 'heap_used' | 'heap_reserved' | 'external' | 'internal') => memory.with({ worker, kind })
  const [used, reserved, external, internal] = [of('heap_used'), of('heap_reserved'), of('external'), of('internal')]

  function sample(): void {
    const statistics = getHeapStatistics()
    used.set(statistics.used_heap_size)
    reserved.set(statistics.total_heap_size)
    external.set(statistics.external_memory)
    internal.set(statistics.malloced_memory)
  }

  sample()
  const timer = setInterval(sample, samplingMs)
  timer.unref()
  return { [Symbol.dispose]: () => clearInterval(timer) }
}
