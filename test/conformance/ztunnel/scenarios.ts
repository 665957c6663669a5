// Topic scenarios: whole processes, real redirection, real network namespaces.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import { defaultHttp2Options, HboneError, openTunnelConnection } from '../../../src/hbone/index.ts'
import { eventually } from '../../support/eventually.ts'
import { ignoreErrors } from '../../support/lab-sockets.ts'
import { canRunLab } from '../../support/mesh-lab.ts'
import { buildScenario, type ScenarioWorld } from './scenario-world.ts'
import { type Data, socketAddress, type TopicRunner } from './topic.ts'

const limitMs = 15_000
const probePatienceMs = 2000

/** Why scenarios are not run here. */
export function pendingScenario(): string | undefined {
  return typeof canRunLab === 'string' ? canRunLab : undefined
}

export const runScenario: TopicRunner = async (one) => {
  await using world = await buildScenario(one)
  const done = new AbortController()
  const tooLong = delay(limitMs, undefined, { signal: done.signal }).then(
    () => assert.fail(`the scenario took more than ${limitMs} ms`),
    () => undefined,
  )
  try {
    await Promise.race([run(world, one), tooLong])
  } finally {
    done.abort()
  }
}

async function run(world: ScenarioWorld, one: Data): Promise<void> {
  const { expect, traffic } = one
  if (one.name === 'revoked-client-certificate') await revokeClient(world)
  if (one.name === 'graceful-shutdown-of-the-proxy') return await shutDownGracefully(world)
  if (traffic.probes !== undefined) return await probe(world, traffic, expect.failsAt)
  if (traffic.rawHbone !== undefined) {
    assert.equal(await rawConnect(world, traffic), expect.status)
  } else if (traffic.httpGet !== undefined) {
    const url = world.fill(traffic.httpGet)
    // Not the lab's own synchronous exec: the control plane that issues the certificates lives in this process.
    const command = [
      'netns',
      'exec',
      world.lab.namespaceName(traffic.from),
      'curl',
      '-sS',
      '-m',
      '5',
      '-w',
      '\n%{http_code}',
      url,
    ]
    const { stdout: answer } = await promisify(execFile)('ip', command)
    assert.equal(answer.split('\n').at(-1), String(expect.status))
    assert.ok(answer.includes(expect.bodyContains))
  } else {
    for (let count = traffic.connections ?? 1; count > 0; count -= 1) await exchange(world, one)
  }
  for (const log of expect.logs ?? []) await awaitLog(world, log)
  if (expect.serverSeesClientIp !== undefined) assert.deepEqual(world.seen, [world.fill(expect.serverSeesClientIp)])
  await awaitMetrics(world, 'source', expect.sourceMetrics ?? {})
  await awaitMetrics(world, 'destination', expect.destinationMetrics ?? {})
  for (const labels of expect.metricLabelsSeen ?? []) {
    const wanted = Object.entries(labels).map(([name, value]) => `${name}="${value}"`)
    assert.ok(
      metricLines(world).some((line) => wanted.every((label) => line.includes(label))),
      JSON.stringify(labels),
    )
  }
}

/** One connection of the client, as the traffic says, with the outcome the case expects. */
async function exchange(world: ScenarioWorld, one: Data): Promise<void> {
  const { traffic, expect } = one
  const socket = await world.lab.connect(traffic.from, socketAddress(world.fill(traffic.to)))
  const failure = new Promise<string | undefined>((resolve) => {
    socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message))
    socket.once('close', () => resolve(undefined))
  })
  const sent = Buffer.from(traffic.send ?? 'hello world')
  const chunks: Buffer[] = []
  socket.on('data', (chunk) => chunks.push(chunk))
  socket.resume()
  socket.write(sent)
  if (traffic.shutdownWrite === true) socket.end()
  const received = (): Buffer => Buffer.concat(chunks)
  switch (expect.clientResult) {
    case 'ok': {
      const isDone = (): boolean =>
        expect.received === undefined ? received().length >= sent.length : received().toString() === expect.received
      while (!isDone())
        await Promise.race([
          once(socket, 'data'),
          failure.then((why) => assert.fail(`the connection ended early: ${why}`)),
        ])
      socket.end()
      await failure
      break
    }
    case 'connection reset':
      assert.equal(await failure, 'ECONNRESET')
      break
    default:
      await failure
      assert.equal(received().length, 0)
  }
  socket.destroy()
}

/** A client that speaks HBONE itself; resolves to the status of its CONNECT. */
async function rawConnect(world: ScenarioWorld, traffic: Data): Promise<number> {
  const { to, authority } = traffic.rawHbone
  const socket = await world.lab.connect(traffic.from, socketAddress(world.fill(to)))
  ignoreErrors(socket)
  const credentials = await world.credentials('spiffe://cluster.local/ns/default/sa/default')
  const connection = await openTunnelConnection(socket, {
    tls: { credentials, checkPeer: () => undefined },
    http2: defaultHttp2Options,
  })
  try {
    const tunnel = await connection.connect({ authority: world.fill(authority), headers: {} })
    tunnel.stream.on('error', () => undefined)
    tunnel.reset()
    return 200
  } catch (error) {
    assert.ok(error instanceof HboneError)
    return Number(/\d{3}/.exec(error.message)?.[0])
  } finally {
    connection.cut()
  }
}

/** The list names the certificate that the client's proxy was given; the server's proxy has taken it up when this resolves. */
async function revokeClient({ lab, proxies, revocationLists }: ScenarioWorld): Promise<void> {
  const { controlPlane } = lab
  const serials = (): readonly string[] => controlPlane.issuedSerials('spiffe://cluster.local/ns/default/sa/client')
  await eventually(
    () => serials().length > 0,
    () => 'the client has no certificate',
  )
  writeFileSync(revocationLists, await controlPlane.revocationList(serials()))
  await proxies.get('remote-node')?.logged(/revocation lists in force.*revoked=1/)
}

async function probe(world: ScenarioWorld, traffic: Data, failsAt: readonly string[]): Promise<void> {
  const outcomes: string[] = []
  for (const [host, port] of traffic.probes) {
    outcomes.push(await probeOne(world, traffic.from, { ip: world.fill(host), port }))
  }
  assert.deepEqual(outcomes, failsAt)
}

async function probeOne(world: ScenarioWorld, pod: string, to: { ip: string; port: number }): Promise<string> {
  let socket: Socket
  try {
    socket = await world.lab.connect(pod, to)
  } catch {
    return 'connect'
  }
  ignoreErrors(socket)
  let answered = false
  socket.on('data', () => {
    answered = true
  })
  socket.resume()
  socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n')
  const ended = new Promise<'ended'>((resolve) => {
    for (const event of ['end', 'close']) socket.once(event, () => resolve('ended'))
  })
  const outcome = await Promise.race([ended, delay(probePatienceMs, 'open' as const)])
  socket.destroy()
  if (outcome === 'open') return 'still open'
  return answered ? 'answered' : 'request'
}

async function shutDownGracefully(world: ScenarioWorld): Promise<void> {
  const { lab, proxies, nodes, fill } = world
  const to = socketAddress(fill('<server>:8080'))
  const socket = await lab.connect('client', to)
  ignoreErrors(socket)
  socket.resume()
  const say = async (text: string): Promise<void> => {
    const answer = once(socket, 'data')
    socket.write(text)
    await answer
  }
  await say('one')
  const proxy = proxies.get(nodes[0] ?? '')
  assert.ok(proxy)
  const stopped = proxy.stop('SIGTERM')
  await proxy.logged(/shutting down/)
  await say('two')
  socket.end()
  assert.equal(await stopped, 0)
  await assert.rejects(lab.connect('client', to))
}

async function awaitLog(world: ScenarioWorld, wanted: Data): Promise<void> {
  const { absent = [], errorContains, ...fields } = wanted
  const holds = (line: string): boolean => {
    const found = readFields(line)
    return (
      Object.entries(fields).every(([name, value]) => found.get(name) === world.fill(String(value))) &&
      (absent as string[]).every((name) => !found.has(name)) &&
      (errorContains === undefined || (found.get('error')?.includes(errorContains) ?? false))
    )
  }
  const lines = (): string[] =>
    [...world.proxies.values()].flatMap((proxy) =>
      proxy
        .log()
        .split('\n')
        .filter((line) => line.includes('\taccess\t')),
    )
  await eventually(
    () => lines().some(holds),
    () => `no line with ${JSON.stringify(wanted)} in\n${lines().join('\n')}`,
  )
}

function readFields(line: string): Map<string, string> {
  const found = new Map<string, string>()
  for (const [, name = '', quoted, bare = ''] of line.matchAll(/([\w.]+)=(?:"((?:[^"\\]|\\.)*)"|(\S+))/g)) {
    found.set(name, quoted ?? bare)
  }
  return found
}

async function awaitMetrics(world: ScenarioWorld, reporter: string, wanted: Record<string, number>): Promise<void> {
  const sumOf = (name: string): number =>
    metricLines(world)
      .filter((line) => line.startsWith(`${name}{`) && line.includes(`reporter="${reporter}"`))
      .reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0)
  for (const [name, value] of Object.entries(wanted)) {
    await eventually(
      () => sumOf(name) === value,
      () => `${name} for ${reporter}: ${sumOf(name)}, expected ${value}`,
    )
  }
}

function metricLines(world: ScenarioWorld): string[] {
  return world.nodes.flatMap((node) =>
    world.lab.exec(node, 'curl', '-sS', '-m', '5', 'http://127.0.0.1:15020/metrics').split('\n'),
  )
}
