// Metrics as Prometheus text or OpenMetrics, and which of the two a scraper asked for.
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { FamilyShape, MetricsRegistry, SeriesSnapshot } from './metrics.ts'

export type ExpositionFormat = 'text' | 'openmetrics'

export const expositionContentType: Readonly<Record<ExpositionFormat, string>> = {
  text: 'text/plain; charset=utf-8',
  openmetrics: 'application/openmetrics-text;charset=utf-8;version=1.0.0',
}

/** OpenMetrics when any entry of the Accept header names it (and does not refuse it with q=0), else text. */
export function negotiateExposition(accept: string | undefined): ExpositionFormat {
  const named = (accept ?? '').split(',').some((entry) => {
    const [type = '', ...parameters] = entry.split(';').map((part) => part.trim().toLowerCase())
    return type === 'application/openmetrics-text' && !parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter))
  })
  return named ? 'openmetrics' : 'text'
}

/** The whole exposition, made without holding up the process for long. */
export async function renderMetrics(registry: MetricsRegistry, format: ExpositionFormat): Promise<string> {
  let text = ''
  for await (const piece of streamMetrics(registry, format)) text += piece
  return text
}

/**
 * The exposition in pieces. Between two pieces the event loop turns, and no more is rendered than is asked for: many series and a slow
 * scraper cost neither latency nor memory. Each value is the one of its moment.
 */
export async function* streamMetrics(registry: MetricsRegistry, format: ExpositionFormat): AsyncGenerator<string> {
  let piece = ''
  let started = performance.now()
  for (const lines of renderLines(registry, format)) {
    piece += lines
    if (piece.length < pieceLength && performance.now() - started < sliceMs) continue
    yield piece
    piece = ''
    await nextTurn()
    started = performance.now()
  }
  if (piece !== '') yield piece
}

const pieceLength = 64 * 1024
const sliceMs = 2

function* renderLines(registry: MetricsRegistry, format: ExpositionFormat): Generator<string> {
  for (const family of registry.collect()) {
    let head = renderHead(family, format)
    for (const series of family.series) {
      const lines = family.type === 'histogram' ? renderHistogram(family, series) : renderSample(family, series)
      yield head + lines
      head = ''
    }
  }
  if (format === 'openmetrics') yield '# EOF\n'
}

function renderHead({ name, help, type }: FamilyShape, format: ExpositionFormat): string {
  const inOpenMetrics = format === 'openmetrics'
  // OpenMetrics names a counter's family without `_total` and allows no counter sample without it.
  const isBareCounter = type === 'counter' && !name.endsWith('_total')
  const familyName = inOpenMetrics && type === 'counter' && !isBareCounter ? name.slice(0, -'_total'.length) : name
  const shownType = inOpenMetrics && isBareCounter ? 'unknown' : type
  return `# HELP ${familyName} ${escapeHelp(help, format)}\n# TYPE ${familyName} ${shownType}\n`
}

function renderSample({ name, labelNames }: FamilyShape, series: SeriesSnapshot): string {
  return `${name}${renderLabels(labelNames, series.labels)} ${formatNumber(series.value)}\n`
}

function renderHistogram({ name, labelNames, bounds }: FamilyShape, series: SeriesSnapshot): string {
  let cumulative = 0
  let lines = ''
  series.buckets?.forEach((count, index) => {
    cumulative += count
    const bound = bounds[index]
    const labels = renderLabels(
      [...labelNames, 'le'],
      [...series.labels, bound === undefined ? '+Inf' : formatNumber(bound)],
    )
    lines += `${name}_bucket${labels} ${cumulative}\n`
  })
  const labels = renderLabels(labelNames, series.labels)
  return `${lines}${name}_sum${labels} ${formatNumber(series.value)}\n${name}_count${labels} ${cumulative}\n`
}

function renderLabels(names: readonly string[], values: readonly string[]): string {
  if (names.length === 0) return ''
  let text = '{'
  for (let index = 0; index < names.length; index += 1) {
    text += `${index === 0 ? '' : ','}${names[index]}="${escapeLabel(values[index] ?? '')}"`
  }
  return `${text}}`
}

function escapeLabel(value: string): string {
  return /[\\"\n]/.test(value) ? value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n') : value
}

function escapeHelp(help: string, format: ExpositionFormat): string {
  const escaped = help.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')
  return format === 'openmetrics' ? escaped.replaceAll('"', '\\"') : escaped
}

function formatNumber(value: number): string {
  if (Number.isNaN(value)) return 'NaN'
  if (value === Number.POSITIVE_INFINITY) return '+Inf'
  return value === Number.NEGATIVE_INFINITY ? '-Inf' : String(value)
}
