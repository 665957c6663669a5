// Log scopes and metrics of our own processes. In: messages and counts; out: lines on a descriptor, a text for scrapers.
// Written here and small, because it is in every data-plane process: a logger and a metrics library would cost some 30 MB of memory each process.
export {
  type ExpositionFormat,
  expositionContentType,
  negotiateExposition,
  renderMetrics,
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
export { createLogging, type Logging, type LoggingOptions, type Scope, silentLogging } from './logging.ts'
export {
  type Counter,
  type CounterSeries,
  createMetricsRegistry,
  type Family,
  type FamilyOptions,
  type FamilySnapshot,
  type Gauge,
  type GaugeSeries,
  type Histogram,
  type HistogramSeries,
  type LabelValues,
  type MetricsRegistry,
  type SeriesSnapshot,
} from './metrics.ts'
export { registerProcessMetrics } from './process-metrics.ts'
export { createFdSink, type FdSinkOptions, type LogSink } from './sink.ts'
