// Metrics and logs between the main thread and a worker: what each of the two does at the worker's start.
import { MessageChannel, type MessagePort } from 'node:worker_threads'
import { startEventLoopMetrics } from './event-loop-metrics.ts'
import type { Logging } from './logging.ts'
import type { MetricFamilies, MetricsRegistry } from './metrics.ts'
import { createThreadLogging, type ThreadLoggingOptions, type ThreadLogStart } from './thread-logging.ts'
import { startThreadMemoryMetrics } from './thread-memory-metrics.ts'
import { createThreadMetrics } from './thread-metrics.ts'

/** What a worker needs to log and count. It is sent with the worker's data, `transfer` in its transfer list. */
export interface ThreadStart {
  /** The value of the label `worker`, and the name of the thread in log lines about it. */
  readonly worker: string
  readonly metrics: MessagePort
  readonly log: ThreadLogStart
}

export interface ConnectedThread extends Disposable {
  readonly start: ThreadStart
  readonly transfer: readonly MessagePort[]
}

/**
 * On the main thread, before the worker starts. Ends with the worker by itself: its counts stay counted, its lines are written. Disposing of
 * it is for a worker that never started.
 */
export function connectThread(
  worker: string,
  { registry, logging }: { readonly registry: MetricsRegistry; readonly logging: Logging },
): ConnectedThread {
  const { port1, port2 } = new MessageChannel()
  const metrics = registry.addThread(port1)
  const log = logging.addThread(worker)
  return {
    start: { worker, metrics: port2, log: log.start },
    transfer: [port2, log.start.port],
    [Symbol.dispose]() {
      metrics[Symbol.dispose]()
      log.close()
    },
  }
}

export interface ThreadObservability extends Disposable {
  readonly metrics: MetricFamilies
  readonly logging: Logging
}

/** In the worker, with what `connectThread` gave. Also publishes how busy the thread is and what its heap takes. Nothing of it keeps the thread running. */
export function joinThread(start: ThreadStart, options: ThreadLoggingOptions = {}): ThreadObservability {
  const metrics = createThreadMetrics(start.metrics)
  const logging = createThreadLogging(start.log, options)
  const eventLoop = startEventLoopMetrics(metrics, start.worker)
  const memory = startThreadMemoryMetrics(metrics, start.worker)
  return {
    metrics,
    logging,
    [Symbol.dispose]() {
      eventLoop[Symbol.dispose]()
      memory[Symbol.dispose]()
      start.metrics.close()
      start.log.port.close()
    },
  }
}
