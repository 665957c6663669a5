import assert from 'node:assert/strict'
import { once } from 'node:events'
import net from 'node:net'
import { test } from 'node:test'
import { createMetricsRegistry, type MetricsRegistry } from '../../observability/index.ts'
import { startStatsServer } from './index.ts'

/** A registry of many series that counts how many have been read. */
function countedRegistry(series: number): MetricsRegistry & { reads: number } {
  const registry = createMetricsRegistry()
  const family = registry.counter({ name: 'many_total', help: 'Many', labels: ['x'] })
  for (let index = 0; index < series; index += 1) family.with({ x: `${index}${'-'.repeat(500)}` }).inc()
  const counted = {
    ...registry,
    reads: 0,
    *collect() {
      for (const one of registry.collect()) {
        yield {
          ...one,
          series: (function* () {
            for (const each of one.series) {
              counted.reads += 1
              yield each
            }
          })(),
        }
      }
    },
  }
  return counted
}

test('a scraper that stops reading is rendered no further for, and holds nobody else up', async () => {
  const series = 40_000
  const registry = countedRegistry(series)
  await using server = await startStatsServer(registry, { port: 0, ipv6: false })
  const stalled = net.connect(server.port, '127.0.0.1')
  stalled.on('error', () => undefined)
  stalled.pause()
  stalled.write('GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n')
  // Until nothing is read any more.
  let seen = -1
  while (seen !== registry.reads || seen < 1) {
    seen = registry.reads
    await new Promise((resolve) => setTimeout(resolve, 200))
  }
  assert.ok(registry.reads < series, `${registry.reads} of ${series}`)
  const response = await fetch(`http://127.0.0.1:${server.port}/metrics`, { headers: { 'accept-encoding': 'gzip' } })
  assert.equal((await response.text()).split('\n').length, series + 3)
  const before = registry.reads
  stalled.destroy()
  await once(stalled, 'close')
  await new Promise((resolve) => setImmediate(resolve))
  assert.equal(registry.reads, before)
})

test('a HEAD request does not render it all', async () => {
  const registry = countedRegistry(20_000)
  await using server = await startStatsServer(registry, { port: 0, ipv6: false })
  const response = await fetch(`http://127.0.0.1:${server.port}/metrics`, { method: 'HEAD' })
  assert.deepEqual([response.status, await response.text()], [200, ''])
  assert.ok(registry.reads < 1000, `${registry.reads}`)
})
