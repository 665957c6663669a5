// Log scopes and metrics of our own processes. In: messages and counts; out: lines on a descriptor, a text for scrapers.
// Written here and small, because it is in every data-plane process: a logger and a metrics library would cost some 30 MB of memory each process.

export { startEventLoopMetrics } from './event-loop-metrics.ts'
export {
  type ExpositionFormat,
  expositionContentType,
  negotiateExposition,
  renderMetrics,
  streamMetrics,
} from './exposition.ts'
export {
  type Fields,
  type FieldValue,
  type FormatRecord,
  formatFields,
  formatJson,
  formatPlain,
  type LogRecord,
  type Quoted,
  quoted,
} from './format.ts'
export {
  formatLogFilter,
  isWritten,
  type Level,
  type LogFilter,
  LogFilterError,
  levelOf,
  parseLevel,
  parseLogFilter,
  parseOutputLevels,
} from './levels.ts'
export { registerLogMetrics } from './log-metrics.ts'
export {
  createLogging,
  type Logging,
  type LoggingOptions,
  type Scope,
  silentLogging,
  type ThreadLog,
} from './logging.ts'
export {
  type Counter,
  type CounterSeries,
  createMetricsRegistry,
  type Family,
  type FamilyOptions,
  type FamilyShape,
  type FamilySnapshot,
  type Gauge,
  type GaugeSeries,
  type Histogram,
  type HistogramSeries,
  type LabelValues,
  type LiveFamily,
  type MetricFamilies,
  type MetricsRegistry,
  type SeriesSnapshot,
} from './metrics.ts'
export { registerProcessMetrics } from './process-metrics.ts'
export { createRefusalLog } from './refusal-log.ts'
export { createFdSink, type FdSinkOptions, type LogSink } from './sink.ts'
export { createThreadLogging, type ThreadLoggingOptions, type ThreadLogStart } from './thread-logging.ts'
export { startThreadMemoryMetrics } from './thread-memory-metrics.ts'
export { createThreadMetrics } from './thread-metrics.ts'
export {
  type ConnectedThread,
  connectThread,
  joinThread,
  type ThreadObservability,
  type ThreadStart,
} from './threads.ts'
