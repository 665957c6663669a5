// How many log lines were lost, as a metric.
import type { Logging } from './logging.ts'
import type { MetricsRegistry } from './metrics.ts'

export function registerLogMetrics(registry: MetricsRegistry, logging: Pick<Logging, 'dropped'>): void {
  const dropped = registry
    .counter({
      name: 'lateen_log_lines_dropped_total',
      help: 'Log lines lost because they were written faster than they were read, or could not be written',
    })
    .with({})
  let counted = 0
  registry.beforeCollect(() => {
    const now = logging.dropped
    dropped.inc(now - counted)
    counted = now
  })
}
