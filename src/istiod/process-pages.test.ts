import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createMetricsRegistry, silentLogging } from '../observability/index.ts'
import { textReply } from './http-server.ts'
import { servePages } from './process-pages.ts'

test('debug pages are on the port of the metrics, and on that of readiness unless it is said that they are not', async () => {
  for (const debugOnHttp of [true, false]) {
    await using stack = new AsyncDisposableStack()
    const logging = silentLogging()
    let isReady = false
    const address = '127.0.0.1:0'
    const settings = { httpAddress: address, monitoringAddress: address, introspectionAddress: '', debugOnHttp }
    const [http, monitoring] = await servePages(
      {
        settings,
        version: '1.2',
        metrics: createMetricsRegistry(),
        logging,
        log: logging.scope('test'),
        isReady: () => isReady,
        graph: () => undefined,
        debug: (path) => (path === '/debug/known' ? () => textReply(200, 'page') : undefined),
        exit: () => assert.fail('nobody asked for it'),
      },
      stack,
    )
    const statusOf = async (of: string | undefined, path: string): Promise<number> => {
      const response = await fetch(`http://${of}${path}`)
      await response.text()
      return response.status
    }
    assert.equal(await statusOf(http, '/debug/known'), debugOnHttp ? 200 : 404)
    assert.equal(await statusOf(monitoring, '/debug/known'), 200)
    assert.equal(await statusOf(monitoring, '/debug/unknown'), 404)
    for (const path of ['/metrics', '/version', '/debugger']) assert.equal(await statusOf(http, path), 404, path)
    assert.equal(await (await fetch(`http://${monitoring}/version`)).text(), '{"version":"1.2"}')
    assert.equal(await statusOf(http, '/ready'), 503)
    isReady = true
    assert.equal(await statusOf(http, '/ready'), 200)
  }
})
