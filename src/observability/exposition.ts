// Metrics as Prometheus text or OpenMetrics, and which of the two a scraper asked for.
import type { FamilySnapshot, MetricsRegistry, SeriesSnapshot } from './metrics.ts'

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

export function renderMetrics(registry: MetricsRegistry, format: ExpositionFormat): string {
  const families = registry.snapshot().map((family) => renderFamily(family, format))
  return `${families.join('')}${format === 'openmetrics' ? '# EOF\n' : ''}`
}

function renderFamily(family: FamilySnapshot, format: ExpositionFormat): string {
  const { name, help } = family
  const inOpenMetrics = format === 'openmetrics'
  // OpenMetrics names a counter's family without `_total` and allows no counter sample without it.
  const isBareCounter = family.type === 'counter' && !name.endsWith('_total')
  const familyName =
    inOpenMetrics && family.type === 'counter' && !isBareCounter ? name.slice(0, -'_total'.length) : name
  const type = inOpenMetrics && isBareCounter ? 'unknown' : family.type
  const head = `# HELP ${familyName} ${escapeHelp(help, format)}\n# TYPE ${familyName} ${type}\n`
  const lines = family.series.map((series) =>
    family.type === 'histogram' ? renderHistogram(family, series) : renderSample(name, family.labelNames, series),
  )
  return head + lines.join('')
}

function renderSample(name: string, labelNames: readonly string[], series: SeriesSnapshot): string {
  return `${name}${renderLabels(labelNames, series.labels)} ${formatNumber(series.value)}\n`
}

function renderHistogram({ name, labelNames, bounds }: FamilySnapshot, series: SeriesSnapshot): string {
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
  return `{${names.map((name, index) => `${name}="${escapeLabel(values[index] ?? '')}"`).join(',')}}`
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
