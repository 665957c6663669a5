// Topic hbone-pool: the pool as the data plane uses it, against a local HTTP/2 server over mutual TLS.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import http2 from 'node:http2'
import net, { type AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import { createTunnelPool, defaultHttp2Options, type Tunnel } from '../../../src/hbone/index.ts'
import { silentLogging } from '../../../src/observability/index.ts'
import type { PodContext } from '../../../src/ztunnel/dataplane/pod-context.ts'
import { openTunnel } from '../../../src/ztunnel/dataplane/tunnels.ts'
import { parseLocalFile } from '../../../src/ztunnel/state/index.ts'
import { createTestAuthority, type TestAuthority, type TestCredentials } from '../../support/certificates.ts'
import type { Data, TopicRunner } from './topic.ts'

const clientId = 'spiffe://td/ns/n/sa/client'
const serverId = 'spiffe://td/ns/n/sa/server'
/** The product waits 10 s for a connection; here a tenth of it, and the limits of the cases with it. */
const timeScale = 0.1

export const runHbonePool: TopicRunner = async (one) => {
  const authority = await createTestAuthority()
  await using server = await (one.serverBlackhole === true ? startBlackhole() : startServer(authority, one))
  const credentials = await authority.issue(clientId)
  const pool = createTunnelPool({
    maxTunnelsPerConnection: one.maxStreams,
    unusedTimeoutMs: one.unusedTimeoutMs ?? 60_000,
  })
  const [source] = parseLocalFile(
    '{workloads: [{uid: c, namespace: n, serviceAccount: client, trustDomain: td, workloadIps: [], services: {}}]}',
  ).workloads
  assert.ok(source)
  const context = contextOf(pool, credentials)
  const open = (sourceIp: string): Promise<Tunnel> =>
    openTunnel(
      context,
      {
        source,
        sourceIp,
        to: { ip: '127.0.0.1', port: server.port },
        authority: '10.0.0.1:80',
        headers: {},
        expectedIdentities: [serverId],
      },
      new AbortController().signal,
    )
  try {
    for (const step of one.steps) {
      if (step.dropPool === true) pool.close()
      if (step.streams !== undefined) await openStreams(step, open)
      await server.expect(step, step.waitMs ?? 2000)
    }
  } finally {
    pool.close()
  }
}

async function openStreams(step: Data, open: (sourceIp: string) => Promise<Tunnel>): Promise<void> {
  if (step.allFailWithinMs !== undefined) {
    const startedAt = performance.now()
    const outcomes = await Promise.allSettled(Array.from({ length: step.streams }, () => open(step.source)))
    assert.ok(outcomes.every(({ status }) => status === 'rejected'))
    const limitMs = step.allFailWithinMs * timeScale
    assert.ok(performance.now() - startedAt < limitMs, `took ${performance.now() - startedAt} ms of ${limitMs}`)
    return
  }
  const tunnels: Tunnel[] = []
  if (step.concurrentStart === true) {
    tunnels.push(...(await Promise.all(Array.from({ length: step.streams }, () => open(step.source)))))
  } else {
    for (let count = 0; count < step.streams; count += 1) tunnels.push(await open(step.source))
  }
  if (step.thenClose === true) await Promise.all(tunnels.map(({ stream }) => endStream(stream)))
}

async function endStream(stream: Duplex): Promise<void> {
  const closed = once(stream, 'close')
  stream.resume()
  stream.end()
  await closed
}

interface TestServer extends AsyncDisposable {
  readonly port: number
  /** Waits until the counts are as expected, and fails when they are not in time. */
  expect(step: Data, withinMs: number): Promise<void>
}

async function startServer(authority: TestAuthority, one: Data): Promise<TestServer> {
  const { privateKey, certificateChain, roots } = await authority.issue(serverId)
  const sessions = new Set<http2.ServerHttp2Session>()
  let opened = 0
  let closed = 0
  const server = http2.createSecureServer({
    key: privateKey,
    cert: certificateChain,
    ca: roots,
    requestCert: true,
    rejectUnauthorized: true,
    minVersion: 'TLSv1.3',
    settings:
      one.serverMaxConcurrentStreams === undefined ? {} : { maxConcurrentStreams: one.serverMaxConcurrentStreams },
  })
  server.on('session', (session) => {
    opened += 1
    sessions.add(session)
    session.on('error', () => {})
    session.on('close', () => {
      closed += 1
      sessions.delete(session)
    })
  })
  server.on('stream', (stream) => {
    stream.on('error', () => {})
    stream.respond({ ':status': 200 })
    stream.pipe(stream)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const isIn = (range: Data, value: number): boolean =>
    Array.isArray(range) ? value >= range[0] && value <= range[1] : range === undefined || value === range
  return {
    port: (server.address() as AddressInfo).port,
    async expect(step, withinMs) {
      const deadline = performance.now() + withinMs
      while (!isIn(step.opened, opened) || !isIn(step.closed, closed)) {
        assert.ok(performance.now() < deadline, `opened ${opened}, closed ${closed}, expected ${JSON.stringify(step)}`)
        await delay(10)
      }
    },
    async [Symbol.asyncDispose]() {
      for (const session of sessions) session.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** A listener whose process is stopped and whose queue is full: connections are neither accepted nor refused. */
async function startBlackhole(): Promise<TestServer> {
  const program =
    'const s=require("net").createServer();s.listen({port:0,host:"127.0.0.1",backlog:1},()=>console.log(s.address().port))'
  const child = spawn(process.execPath, ['-e', program], { stdio: ['ignore', 'pipe', 'inherit'] })
  const [line] = await once(child.stdout, 'data')
  const port = Number(String(line))
  child.kill('SIGSTOP')
  const fillers = Array.from({ length: 4 }, () => net.connect(port, '127.0.0.1').on('error', () => {}))
  await delay(100)
  return {
    port,
    expect: async () => {},
    async [Symbol.asyncDispose]() {
      for (const filler of fillers) filler.destroy()
      child.kill('SIGKILL')
      await once(child, 'exit')
    },
  }
}

function contextOf(pool: PodContext['pool'], credentials: TestCredentials): PodContext {
  const options: Partial<PodContext['options']> = {
    http2: defaultHttp2Options,
    allowTls12: false,
    connectTimeoutMs: 10_000 * timeScale,
  }
  const services: Partial<PodContext['services']> = {
    credentials: async () => credentials,
    log: silentLogging().scope('test'),
  }
  return { namespace: undefined, options, services, pool, stopping: new AbortController().signal } as Data as PodContext
}
