import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { createGraph } from '../collections/index.ts'
import { type Logging, silentLogging } from '../observability/index.ts'
import { type HttpServer, serveHttp } from './http-server.ts'
import { introspectionRoutes } from './introspection.ts'

describe('the introspection port', () => {
  let server: HttpServer
  let logging: Logging
  let exits = 0
  const ask = (path: string, init: RequestInit = {}) => fetch(`http://${server.address}${path}`, init)
  const setLevel = (scope: string, body: string, headers: Record<string, string> = {}) =>
    ask(`/scopej/${scope}`, { method: 'PUT', body, headers })

  before(async () => {
    logging = silentLogging()
    logging.scope('xds', 'The xDS server')
    const graph = createGraph({ report: () => {} })
    const pods = graph.input<{ node: string }>('pods')
    pods.set('a', { node: '<n>' })
    graph.derive('nodes', pods, (_, { node }) => node)
    process.env.LATEEN_TEST_TOKEN = 'do-not-show'
    const route = introspectionRoutes({
      logging,
      graph: () => graph,
      version: 'test',
      startedAt: new Date(),
      exit: () => {
        exits += 1
      },
    })
    server = await serveHttp('127.0.0.1:0', route, () => {}, ['GET', 'HEAD', 'PUT'])
  })
  after(async () => {
    delete process.env.LATEEN_TEST_TOKEN
    await server.close()
  })

  test('shows and changes the level of a scope while the process runs', async () => {
    assert.deepEqual(await (await ask('/scopej/xds')).json(), {
      name: 'xds',
      description: 'The xDS server',
      output_level: 'off',
    })
    assert.equal((await setLevel('xds', '{"output_level":"debug"}')).status, 202)
    assert.equal(logging.scope('xds').level, 'debug')
    assert.equal((await setLevel('xds', '{"output_level":"loud"}')).status, 400)
    assert.equal((await setLevel('none', '{"output_level":"debug"}')).status, 404)
  })

  test('shows the collections with what they read and hold', async () => {
    const collections = (await (await ask('/collectionj/')).json()) as { name: string; size: number; reads: string[] }[]
    assert.deepEqual(
      collections.map(({ name, size, reads }) => ({ name, size, reads })),
      [
        { name: 'pods', size: 1, reads: [] },
        { name: 'nodes', size: 1, reads: ['pods'] },
      ],
    )
  })

  test('has a page for each topic', async () => {
    for (const topic of ['home', 'scope', 'mem', 'env', 'proc', 'args', 'version', 'signal', 'collection']) {
      const response = await ask(`/${topic}z/`)
      assert.equal(response.status, 200, topic)
      assert.match(response.headers.get('content-type') ?? '', /text\/html/)
      assert.equal((await ask(`/${topic}j/`)).status, 200, topic)
    }
    assert.equal((await ask('/otherz/')).status, 404)
  })

  test('does not show secrets of the environment', async () => {
    assert.doesNotMatch(await (await ask('/envj/')).text(), /do-not-show/)
  })

  test('does nothing for a web page', async () => {
    const origin = { origin: 'http://evil.example' }
    assert.equal((await setLevel('xds', '{"output_level":"error"}', origin)).status, 403)
    assert.equal((await ask('/homej/exit', { method: 'PUT', headers: origin })).status, 403)
    assert.equal(exits, 0)
    assert.equal((await ask('/homej/exit', { method: 'PUT' })).status, 200)
    assert.equal(exits, 1)
  })

  test('ends the process by the signal for it, and sends it no other', async () => {
    const before = exits
    const signals = (await (await ask('/signalj/')).json()) as { name: string }[]
    assert.deepEqual(
      signals.map(({ name }) => name),
      ['SIGTERM', 'SIGINT'],
    )
    for (const name of ['SIGUSR1', 'SIGKILL', 'SIGTERM/']) {
      assert.equal((await ask(`/signalj/${name}`, { method: 'PUT' })).status, 400, name)
    }
    assert.equal(exits, before)
    assert.equal((await ask('/signalj/SIGTERM', { method: 'PUT' })).status, 202)
    assert.equal(exits, before + 1)
  })
})
