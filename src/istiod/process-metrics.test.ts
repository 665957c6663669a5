import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { createMetricsRegistry, renderMetrics } from '../observability/index.ts'
import { countConnections, countEndpoints, countServices, describeProcess } from './process-metrics.ts'

/** The samples of a registry, without help and types. */
async function samples(of: ReturnType<typeof createMetricsRegistry>): Promise<readonly string[]> {
  return (await renderMetrics(of, 'text')).split('\n').filter((line) => line !== '' && !line.startsWith('#'))
}

describe('metrics of the process', () => {
  test('tell its version, and how long it has been up', async () => {
    const metrics = createMetricsRegistry()
    describeProcess(metrics, '1.2')
    const before = process.uptime()
    const [version, uptime, ...more] = await samples(metrics)
    assert.equal(version, 'pilot_info{version="1.2"} 1')
    const [name, seconds] = uptime?.split(' ') ?? []
    assert.equal(name, 'istiod_uptime_seconds')
    assert.ok(Number(seconds) >= before && Number(seconds) <= process.uptime())
    assert.deepEqual(more, [])
  })

  test('tell the services of the moment', async () => {
    const metrics = createMetricsRegistry()
    let count = 3
    countServices(metrics, () => count)
    assert.deepEqual(await samples(metrics), ['pilot_services 3'])
    count = 0
    assert.deepEqual(await samples(metrics), ['pilot_services 0'])
  })

  test('tell the endpoints that are none, or not ready, at the moment', async () => {
    const metrics = createMetricsRegistry()
    let counts = { withoutPod: 2, notReady: 1 }
    countEndpoints(metrics, () => counts)
    assert.deepEqual(await samples(metrics), ['endpoint_no_pod 2', 'pilot_endpoint_not_ready 1'])
    counts = { withoutPod: 0, notReady: 3 }
    assert.deepEqual(await samples(metrics), ['endpoint_no_pod 0', 'pilot_endpoint_not_ready 3'])
  })

  test('tell the connections of all ports by whether a caller is known, and those that were ended by why', async () => {
    const metrics = createMetricsRegistry()
    const ports = [
      { size: 5, unproven: 2 },
      { size: 1, unproven: 1 },
    ]
    const ended = countConnections(metrics, () => ports)
    for (const reason of ['idle', 'stuck', 'idle'] as const) ended(reason)
    assert.deepEqual(await samples(metrics), [
      'lateen_grpc_connections{state="unproven"} 3',
      'lateen_grpc_connections{state="known"} 3',
      'lateen_grpc_connections_ended_total{reason="idle"} 2',
      'lateen_grpc_connections_ended_total{reason="stuck"} 1',
    ])
    ports.pop()
    assert.ok((await samples(metrics)).includes('lateen_grpc_connections{state="unproven"} 2'))
  })
})
