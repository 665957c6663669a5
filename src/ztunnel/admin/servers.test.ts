import assert from 'node:assert/strict'
import { once } from 'node:events'
import net from 'node:net'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { brotliDecompress, gunzip, inflate, zstdDecompress } from 'node:zlib'
import { createTestAuthority } from '../../../test/support/certificates.ts'
import { createLogging, createMetricsRegistry } from '../../observability/index.ts'
import { createProcessProfiler } from '../profiling/index.ts'
import { createMeshState } from '../state/index.ts'
import { dumpAll } from './config-dump.ts'
import { startAdminServer, startStatsServer } from './index.ts'
import { encodePprof } from './pprof.ts'

const sources = {
  view: createMeshState(),
  version: { version: '1', gitRevision: 'abc', istioVersion: '1.27' },
  config: {},
  certificates: () => [],
}

async function startAdmin(shutDown = () => {}) {
  const logging = createLogging({ sink: { write: () => {}, dropped: 0, flush: async () => {}, flushSync: () => {} } })
  return await startAdminServer(
    { logging, dump: sources, profiler: createProcessProfiler(), shutDown },
    { port: 0, ipv6Loopback: false },
  )
}

test('metrics are compressed as the scraper accepts', async () => {
  const registry = createMetricsRegistry()
  registry.counter({ name: 'things_total', help: 'Things' }).with({}).inc()
  await using server = await startStatsServer(registry, { port: 0, ipv6: false })
  const decoders = { gzip: gunzip, br: brotliDecompress, deflate: inflate, zstd: zstdDecompress }
  for (const [encoding, decode] of Object.entries(decoders)) {
    const { contentEncoding, body } = await rawGet(server.port, '/metrics', encoding)
    assert.equal(contentEncoding, encoding)
    assert.match((await promisify(decode)(body)).toString(), /things_total 1/)
  }
  const { contentEncoding, body } = await rawGet(server.port, '/stats/prometheus', 'gzip;q=0')
  assert.equal(contentEncoding, undefined)
  assert.match(body.toString(), /things_total 1/)
})

test('the shutdown is asked for by POST only', async () => {
  let asked = 0
  await using server = await startAdmin(() => {
    asked += 1
  })
  const url = `http://127.0.0.1:${server.port}/quitquitquit`
  assert.equal((await fetch(url)).status, 405)
  const response = await fetch(url, { method: 'POST' })
  assert.deepEqual([await response.text(), asked], ['shutdown now\n', 1])
})

test('profiles: bad numbers are told, a profile is a gzip', async () => {
  await using server = await startAdmin()
  const get = (query: string) => fetch(`http://127.0.0.1:${server.port}/debug/pprof/profile?${query}`)
  const bad = await get('seconds=0')
  assert.deepEqual([bad.status, await bad.text()], [400, 'invalid seconds value; expected 1-300\n'])
  assert.equal(await (await get('frequency=1001')).text(), 'invalid frequency value; expected 1-1000\n')
  const profile = await get('seconds=1')
  assert.equal(profile.status, 200)
  assert.ok((await promisify(gunzip)(Buffer.from(await profile.arrayBuffer()))).length > 0)
})

test('a heap profile is there once sampling is switched on', async () => {
  await using server = await startAdmin()
  const get = (path: string) => fetch(`http://127.0.0.1:${server.port}/debug/pprof/heap${path}`)
  assert.equal((await get('')).status, 500)
  assert.equal((await get('/profiling?activate=yes')).status, 400)
  assert.equal(await (await get('/profiling?activate=true')).text(), 'heap profiling is active\n')
  const held = Array.from({ length: 100_000 }, (_, index) => ({ index }))
  const profile = await get('')
  assert.equal(profile.status, 200)
  const text = (await promisify(gunzip)(Buffer.from(await profile.arrayBuffer()))).toString('latin1')
  assert.ok(text.includes('inuse_space') && text.includes('servers.test.ts'))
  assert.equal(held.length, 100_000)
  await get('/profiling?activate=false')
  assert.equal((await get('')).status, 500)
})

test('a profile names its threads and their functions', () => {
  const callFrame = { functionName: 'work', scriptId: '1', url: 'file.js', lineNumber: 4, columnNumber: 0 }
  const root = { ...callFrame, functionName: '(root)' }
  const profile = {
    nodes: [
      { id: 1, callFrame: root, children: [2] },
      { id: 2, callFrame },
    ],
    startTime: 0,
    endTime: 10,
    samples: [2, 2],
  }
  const threads = ['main', 'worker 0'].map((thread) => ({ thread, profile }))
  const bytes = encodePprof(threads, 1_000_000)
  for (const thread of ['main', 'worker 0']) assert.ok(Buffer.from(bytes).includes(thread))
  assert.ok(Buffer.from(bytes).includes('work'))
  assert.ok(Buffer.from(bytes).includes('nanoseconds'))
})

test('certificates are dumped without keys', async () => {
  const authority = await createTestAuthority()
  const issued = await authority.issue('spiffe://td/ns/n/sa/s')
  const certificate = {
    privateKey: issued.privateKey,
    leaf: issued.certificateChain,
    intermediates: [],
    roots: [issued.roots],
    notBefore: new Date(),
    notAfter: new Date(),
    serial: '1',
  }
  const dump = await dumpAll({
    ...sources,
    certificates: () => [
      { identity: 'spiffe://td/ns/n/sa/s', state: 'Available', certificate },
      { identity: 'spiffe://td/ns/n/sa/t', state: 'Unavailable', error: { message: 'no CA' } },
    ],
  })
  const text = JSON.stringify(dump.certificates)
  assert.ok(!text.includes('PRIVATE'))
  assert.ok(!text.includes(Buffer.from(issued.privateKey).toString('base64').slice(0, 40)))
  assert.match(text, /"serialNumber":"17","validFrom":"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"/)
  assert.match(text, /"state":"Unavailable: no CA"/)
})

test('a bind that fails says where', async () => {
  const taken = net.createServer().listen(0, '127.0.0.1')
  await once(taken, 'listening')
  const { port } = taken.address() as net.AddressInfo
  const logging = createLogging({ sink: { write: () => {}, dropped: 0, flush: async () => {}, flushSync: () => {} } })
  try {
    await assert.rejects(
      startAdminServer(
        { logging, dump: sources, profiler: createProcessProfiler(), shutDown: () => {} },
        { port, ipv6Loopback: false },
      ),
      new RegExp(`^Error: failed to bind to address 127\\.0\\.0\\.1:${port}: `),
    )
  } finally {
    taken.close()
  }
})

async function rawGet(port: number, path: string, encoding: string) {
  const { request } = await import('node:http')
  const sent = request({ port, host: '127.0.0.1', path, headers: { 'accept-encoding': encoding }, agent: false }).end()
  const [response] = await once(sent, 'response')
  const chunks: Buffer[] = []
  for await (const chunk of response) chunks.push(chunk)
  return { contentEncoding: response.headers['content-encoding'] as string | undefined, body: Buffer.concat(chunks) }
}

test('a request whose head does not come to its end is given up, and one whose head is too long is refused', async () => {
  await using server = await startAdmin()
  const answerTo = async (text: string): Promise<string> => {
    const socket = net.connect(server.port, '127.0.0.1')
    socket.write(text)
    const chunks: Buffer[] = []
    for await (const chunk of socket) chunks.push(chunk)
    return Buffer.concat(chunks).toString()
  }
  const startedAt = performance.now()
  assert.match(await answerTo('GET /config_dump HTTP/1.1\r\nhost: a\r\n'), /^HTTP\/1\.1 408 /)
  const tookMs = performance.now() - startedAt
  assert.ok(tookMs >= 2000 && tookMs < 8000, `${tookMs}`)
  assert.match(await answerTo(`GET / HTTP/1.1\r\nhost: a\r\nx: ${'y'.repeat(8 * 1024)}\r\n\r\n`), /^HTTP\/1\.1 431 /)
})
