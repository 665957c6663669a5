import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  createMetricsRegistry,
  negotiateExposition,
  registerProcessMetrics,
  renderMetrics,
  streamMetrics,
} from './index.ts'

test('counters, gauges and histograms as text', async () => {
  const registry = createMetricsRegistry()
  const sent = registry.counter({ name: 'sent_total', help: 'Bytes', labels: ['to', 'from'] })
  const series = sent.with({ to: 'a"b\\c\nd', from: '' })
  series.inc()
  series.inc(2)
  series.inc(-5)
  registry.counter({ name: 'unused_total', help: 'No series yet' })
  registry.gauge({ name: 'open', help: 'Open' }).with({}).set(4)
  const time = registry.histogram({ name: 'time', help: 'Time', bounds: [0.1, 1] })
  for (const value of [0.05, 0.1, 0.5, 7]) time.with({}).observe(value)
  assert.equal(
    await renderMetrics(registry, 'text'),
    [
      '# HELP sent_total Bytes',
      '# TYPE sent_total counter',
      'sent_total{to="a\\"b\\\\c\\nd",from=""} 3',
      '# HELP open Open',
      '# TYPE open gauge',
      'open 4',
      '# HELP time Time',
      '# TYPE time histogram',
      'time_bucket{le="0.1"} 2',
      'time_bucket{le="1"} 3',
      'time_bucket{le="+Inf"} 4',
      'time_sum 7.65',
      'time_count 4',
      '',
    ].join('\n'),
  )
})

test('a NUL in a label value neither moves the values behind it nor makes two series one', async () => {
  const registry = createMetricsRegistry()
  const seen = registry.counter({ name: 'seen_total', help: 'Seen', labels: ['a', 'b', 'c'] })
  seen.with({ a: 'x\0y', b: 'z', c: '' }).inc()
  seen.with({ a: 'x', b: 'y\0z', c: '' }).inc(2)
  assert.deepEqual(
    registry.snapshot()[0]?.series.map(({ labels, value }) => [...labels, value]),
    [
      ['x\ufffdy', 'z', '', 1],
      ['x', 'y\ufffdz', '', 2],
    ],
  )
})

test('OpenMetrics names the family without _total and ends with EOF', async () => {
  const registry = createMetricsRegistry()
  registry.counter({ name: 'a_total', help: 'A' }).with({}).inc()
  registry.counter({ name: 'bare', help: 'B' }).with({}).inc()
  assert.equal(
    await renderMetrics(registry, 'openmetrics'),
    '# HELP a A\n# TYPE a counter\na_total 1\n# HELP bare B\n# TYPE bare unknown\nbare 1\n# EOF\n',
  )
})

test('a removed series leaves the exposition', async () => {
  const registry = createMetricsRegistry()
  const gauge = registry.gauge({ name: 'g', help: 'G', labels: ['x'] })
  gauge.with({ x: '1' }).inc()
  gauge.remove({ x: '1' })
  assert.equal(await renderMetrics(registry, 'text'), '')
  assert.throws(() => registry.gauge({ name: 'g', help: 'again' }), /registered twice/)
})

test('the scraper chooses the format', () => {
  assert.equal(negotiateExposition(undefined), 'text')
  assert.equal(negotiateExposition('text/plain'), 'text')
  assert.equal(negotiateExposition('application/openmetrics-text;version=1.0.0;q=0.5,text/plain;q=0.9'), 'openmetrics')
  assert.equal(negotiateExposition('application/openmetrics-text;q=0'), 'text')
})

test('process metrics are read when scraped', async () => {
  const registry = createMetricsRegistry()
  registerProcessMetrics(registry)
  const text = await renderMetrics(registry, 'text')
  assert.match(text, /^process_resident_memory_bytes \d{7,}$/m)
  assert.match(text, /^process_open_fds [1-9]\d*$/m)
  assert.match(text, /^process_max_fds [1-9]\d*$/m)
})

test('other work goes on while many series are rendered, and only what is asked for is', async () => {
  const registry = createMetricsRegistry()
  const many = registry.counter({ name: 'many_total', help: 'Many', labels: ['x'] })
  for (let index = 0; index < 20_000; index += 1) many.with({ x: String(index) }).inc(index)
  let turns = 0
  const turn = () => {
    turns += 1
    immediate = setImmediate(turn)
  }
  let immediate = setImmediate(turn)
  const text = await renderMetrics(registry, 'text')
  clearImmediate(immediate)
  assert.equal(text.split('\n').length, 20_003)
  assert.ok(turns >= text.length / 70_000, `${turns} turns`)
  const pieces = streamMetrics(registry, 'text')
  const first = await pieces.next()
  assert.ok(first.value !== undefined && first.value.length < 70_000)
  await pieces.return(undefined)
})
