// A client that never reads, and callers who prove nothing: each costs the server a bounded amount of memory, and the others nothing.
import assert from 'node:assert/strict'
import { connect as connectHttp2, type IncomingHttpHeaders } from 'node:http2'
import { describe, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { status } from '@grpc/grpc-js'
import { createMetricsRegistry, renderMetrics } from '../observability/index.ts'
import { address, condition, namesOf, pki, stallingProxy, startClient, startServer } from './test-streams.ts'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

describe('a caller who has not proved anything', { timeout: 20_000 }, () => {
  test('can send no more than the window of a stream', async () => {
    const asked = Promise.withResolvers<void>()
    const decided = Promise.withResolvers<never>()
    decided.promise.catch(() => {})
    const authenticate = (): Promise<never> => {
      asked.resolve()
      return decided.promise
    }
    await using server = await startServer(undefined, { authenticate })
    const session = connectHttp2(`https://localhost:${server.port}`, { ca: pki.roots })
    const stream = session.request({
      ':method': 'POST',
      ':path': '/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources',
      'content-type': 'application/grpc',
      te: 'trailers',
    })
    const message = Buffer.alloc(5 + 8 * 1024 * 1024, 'x')
    message.writeUInt8(0, 0)
    message.writeUInt32BE(message.byteLength - 5, 1)
    stream.end(message)
    await asked.promise
    await condition(() => session.state.remoteWindowSize === 0)
    assert.ok(session.socket.bytesWritten < 200_000, `${session.socket.bytesWritten} bytes`)
    const ended = new Promise((resolve) => {
      const tell = (headers: IncomingHttpHeaders): void => {
        if (headers['grpc-status'] !== undefined) resolve(Number(headers['grpc-status']))
      }
      stream.on('response', tell)
      stream.on('trailers', tell)
    })
    decided.reject(new Error('nobody'))
    assert.equal(await ended, status.UNAUTHENTICATED)
    session.destroy()
  })
})

describe('a client that never reads', { timeout: 60_000 }, () => {
  test('costs no more than what there is, and no other client any time, while ten thousand changes happen', async () => {
    const metrics = createMetricsRegistry()
    await using server = await startServer(undefined, { metrics })
    const stalled = await stallingProxy(server.port)
    await using silent = startClient(stalled.port)
    await using other = startClient(server.port)
    await Promise.all([silent.client.synced, other.client.synced])
    stalled.pause()
    const names = Array.from({ length: 500 }, (_, i) => `w${i}`)
    const text = 'x'.repeat(4_000)
    const waits: number[] = []
    let most = 0
    // Buffers go one turn after the objects that held them.
    const held = async (): Promise<number> => {
      collect()
      await setImmediate()
      collect()
      const { heapUsed, arrayBuffers } = process.memoryUsage()
      return heapUsed + arrayBuffers
    }
    const before = await held()
    for (let change = 0; change < 10_000; change += 100) {
      const set = Array.from({ length: 100 }, (_, i) => ({
        name: names[(change + i) % names.length] ?? '',
        text: `${change}-${text}`,
      }))
      other.updates.length = 0
      const from = performance.now()
      server.addresses.change({ set })
      await other.until((updates) => updates.length > 0)
      waits.push(performance.now() - from)
      if (change % 2_000 === 0) most = Math.max(most, (await held()) - before)
    }
    const watch = server.xds.connections().map(({ watches }) => watches.get(address))
    const waiting = watch.map((one) => (one?.pending.size ?? 0) + (one?.later.pending.size ?? 0))
    assert.ok(Math.max(...waiting) > 0, 'the silent client has read nothing')
    assert.ok(Math.max(...waiting) <= 2 * names.length, `${waiting}`)
    // 40 MB went by; there are 2 MB of resources, held at most twice for the silent client.
    assert.ok(most < 15_000_000, `${most} bytes`)
    const typical = waits.toSorted((a, b) => a - b)[50] ?? Infinity
    assert.ok(typical < 500, `a change took ${typical} ms`)
    assert.equal(namesOf(silent.updates).length, 0)
    await stalled.close()
    await condition(() => server.xds.connections().length === 1)
    const page = await renderMetrics(metrics, 'text')
    assert.match(page, /pilot_xds_pushes\{type="wds_senderr"\} [1-9]/)
    assert.match(page, /pilot_xds_push_time_count\{type="wds"\} [1-9]/)
    assert.match(page, /pilot_xds_recv_max [1-9]/)
  })
})
