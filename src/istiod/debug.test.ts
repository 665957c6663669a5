import assert from 'node:assert/strict'
import { type IncomingHttpHeaders, request } from 'node:http'
import { networkInterfaces } from 'node:os'
import { describe, type TestContext, test } from 'node:test'
import { type Authenticator, bearerToken } from '../ca/index.ts'
import type { Connection } from '../xds/index.ts'
import { debugRoutes } from './debug.ts'
import { serveHttp } from './http-server.ts'
import { createProfiler } from './profiling.ts'
import { debugSourcesOf, proxyOf } from './testing.ts'

/** Bearer tokens are names of namespaces. */
const authenticator: Authenticator = {
  name: 'test',
  async authenticate(request) {
    return { identities: [`spiffe://cluster.local/ns/${bearerToken(request)}/sa/x`], source: 'jwt' }
  },
}

/** On all addresses, so that callers can come from elsewhere. */
async function serve(
  t: TestContext,
  {
    isAdmin = true,
    profiles = true,
    accounts = authenticator,
    connections = [proxyOf('app'), proxyOf('shop')] as readonly Connection[],
  } = {},
) {
  const done: string[] = []
  const routes = debugRoutes({
    sources: debugSourcesOf({
      connections: () => connections,
      pushAll: () => void done.push('push'),
      disconnect: isAdmin ? ({ id }) => void done.push(`disconnect ${id}`) : undefined,
    }),
    profiler: profiles ? createProfiler() : undefined,
    authenticators: [accounts],
    requireAuthentication: true,
    systemNamespace: 'istio-system',
    allowedNamespaces: ['monitoring'],
  })
  const server = await serveHttp('0.0.0.0:0', routes, (error) => assert.fail(String(error)))
  t.after(() => server.close())
  const port = server.address.split(':').at(-1) ?? ''
  const get = (host: string, path: string, headers: IncomingHttpHeaders = {}) =>
    new Promise<{ readonly status: number; readonly body: string }>((resolve, reject) => {
      const asked = request({ host, port, path: `/debug/${path}`, headers, agent: false }, (response) => {
        let body = ''
        response.setEncoding('utf8').on('data', (text: string) => (body += text))
        response.on('end', () => resolve({ status: response.statusCode ?? 0, body }))
      })
      asked.on('error', reject).end()
    })
  return { get, done }
}

const own = Object.values(networkInterfaces())
  .flatMap((addresses) => addresses ?? [])
  .find(({ family, internal }) => family === 'IPv4' && !internal)?.address
const elsewhere = own === undefined ? { skip: 'this machine has no address but loopback' } : {}

describe('debug pages', () => {
  test(
    'look at the proof of so many callers together, and answer those of this machine meanwhile',
    elsewhere,
    async (t) => {
      const proven = Promise.withResolvers<void>()
      const fifty = Promise.withResolvers<void>()
      let asked = 0
      const accounts: Authenticator = {
        name: 'slow',
        async authenticate(request) {
          asked += 1
          if (asked === 50) fifty.resolve()
          await proven.promise
          return authenticator.authenticate(request)
        },
      }
      const { get } = await serve(t, { accounts })
      const strangers = Array.from({ length: 50 }, () => get(own ?? '', 'syncz', { authorization: 'Bearer x' }))
      await fifty.promise
      assert.equal((await get(own ?? '', 'syncz', { authorization: 'Bearer x' })).status, 503)
      assert.equal((await get('127.0.0.1', 'syncz')).status, 200)
      proven.resolve()
      assert.deepEqual(new Set((await Promise.all(strangers)).map(({ status }) => status)), new Set([403]))
      assert.equal((await get(own ?? '', 'syncz', { authorization: 'Bearer monitoring' })).status, 200)
    },
  )

  test('are for the system namespace and those that are allowed, from elsewhere', elsewhere, async (t) => {
    const { get } = await serve(t)
    const statusOf = async (page: string, namespace?: string): Promise<number> =>
      (await get(own ?? '', page, namespace === undefined ? {} : { authorization: `Bearer ${namespace}` })).status
    for (const page of [
      'syncz',
      'config_dump?proxyID=web.app',
      'pprof/',
      'pprof/heap?seconds=0.01',
      'force_disconnect',
    ]) {
      assert.equal(await statusOf(page), 401, page)
    }
    assert.equal(await statusOf('syncz', 'app'), 403)
    assert.equal((await get(own ?? '', 'syncz', { authorization: 'Istio istio-system' })).status, 200)
    assert.equal(await statusOf('pprof/', 'app'), 403)
    assert.equal(await statusOf('pprof/heap?seconds=0.01', 'app'), 403)
    assert.equal(await statusOf('force_disconnect?proxyID=web.app', 'app'), 403)
    assert.equal(await statusOf('config_dump?proxyID=web.app', 'app'), 200)
    assert.equal(await statusOf('config_dump?proxyID=web.shop', 'app'), 404)
    for (const namespace of ['istio-system', 'monitoring']) {
      assert.equal(await statusOf('syncz', namespace), 200)
      assert.equal(await statusOf('pprof/', namespace), 200)
    }
  })

  test('are open to processes of this machine, and not to web pages of other sites in a browser here', async (t) => {
    const { get, done } = await serve(t)
    assert.equal((await get('127.0.0.1', 'adsz?push=true')).status, 200)
    assert.deepEqual(done, ['push'])
    const site = { 'sec-fetch-site': 'cross-site' }
    assert.equal((await get('127.0.0.1', 'adsz?push=true', site)).status, 401)
    assert.equal((await get('127.0.0.1', 'force_disconnect?proxyID=web.app', site)).status, 401)
    assert.deepEqual(done, ['push'])
  })

  test('disconnect a client where that is allowed', async (t) => {
    const { get, done } = await serve(t)
    assert.equal((await get('127.0.0.1', 'force_disconnect')).status, 400)
    assert.equal((await get('127.0.0.1', 'force_disconnect?proxyID=web.none')).status, 404)
    assert.deepEqual(await get('127.0.0.1', 'force_disconnect?proxyID=web.shop'), { status: 200, body: 'OK\n' })
    assert.deepEqual(done, ['disconnect web.shop-1'])
    const { get: ask } = await serve(t, { isAdmin: false })
    assert.equal((await ask('127.0.0.1', 'force_disconnect?proxyID=web.shop')).status, 404)
  })

  test('show every client that says to be a proxy, with who it has proved to be', async (t) => {
    const identities = ['spiffe://cluster.local/ns/app/sa/web', 'spiffe://cluster.local/ns/app/sa/other']
    const connections = [...identities.map((identity, index) => proxyOf('app', index + 1, [identity])), proxyOf('shop')]
    const { get, done } = await serve(t, { connections })
    const { body } = await get('127.0.0.1', 'config_dump?proxyID=web.app')
    assert.deepEqual(JSON.parse(body), {
      proxy: 'web.app',
      clients: identities.map((identity, index) => ({
        connection: `web.app-${index + 1}`,
        address: '',
        identities: [identity],
        configs: [],
      })),
    })
    assert.equal((await get('127.0.0.1', 'force_disconnect?proxyID=web.app')).status, 200)
    assert.deepEqual(done, ['disconnect web.app-1', 'disconnect web.app-2'])
  })

  test('take profiles, one at a time', async (t) => {
    const { get } = await serve(t)
    const long = get('127.0.0.1', 'pprof/profile?seconds=0.3')
    const other = get('127.0.0.1', 'pprof/profile?seconds=0.3')
    const [cpu, refused] = [await long, await other].toSorted((a, b) => a.status - b.status)
    assert.deepEqual([cpu?.status, refused?.status], [200, 409])
    assert.ok((JSON.parse(cpu?.body ?? '') as { nodes: unknown[] }).nodes.length > 0)
    const sampled = await get('127.0.0.1', 'pprof/heap?seconds=0.1')
    assert.ok('head' in (JSON.parse(sampled.body) as object))
    assert.equal((await get('127.0.0.1', 'pprof/profile?seconds=1000')).status, 400)
    assert.equal((await get('127.0.0.1', 'pprof/trace')).status, 404)
    const { get: ask } = await serve(t, { profiles: false })
    assert.equal((await ask('127.0.0.1', 'pprof/profile?seconds=0.1')).status, 404)
  })
})
