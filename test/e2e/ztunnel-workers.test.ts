// The node proxy's threads: what one of them does, or fails to do, and the others.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import type net from 'node:net'
import { after, before, suite, test } from 'node:test'
import { security } from '../../src/proto/index.ts'
import { createEchoLab, server } from '../support/echo-lab.ts'
import { eventually } from '../support/eventually.ts'
import { inspectable, inspectProcess } from '../support/inspected-process.ts'
import { ignoreErrors } from '../support/lab-sockets.ts'
import { canRunLab, type LabProxy, type MeshLab } from '../support/mesh-lab.ts'
import { exchange } from '../support/mesh-lab-content.ts'

const to = { ip: server.ip, port: 8080 }
/** So many that each worker gets some, whatever the kernel's hash. */
const many = 32

interface EchoConnection {
  readonly socket: net.Socket
  /** Bytes that came back. */
  readonly echoed: () => number
}

async function connectEcho(lab: MeshLab): Promise<EchoConnection> {
  const socket = await lab.connect('client', to)
  ignoreErrors(socket)
  socket.on('end', () => socket.end())
  let bytes = 0
  socket.on('data', (chunk: Buffer) => {
    bytes += chunk.length
  })
  socket.resume()
  const connection = { socket, echoed: () => bytes }
  await roundTrip(connection)
  return connection
}

const connectMany = (lab: MeshLab): Promise<EchoConnection[]> =>
  Promise.all(Array.from({ length: many }, () => connectEcho(lab)))

async function roundTrip({ socket, echoed }: EchoConnection): Promise<void> {
  const wanted = echoed() + 1
  socket.write('x')
  while (echoed() < wanted) await once(socket, 'data')
}

/** However it ends. */
const closeOf = ({ socket }: EchoConnection): Promise<void> =>
  new Promise((resolve) => socket.once('close', () => resolve()))

async function closeAll(connections: readonly EchoConnection[]): Promise<void> {
  await Promise.all(
    connections.map(async (connection) => {
      const closed = closeOf(connection)
      connection.socket.end()
      await closed
    }),
  )
}

const inspect = (lab: MeshLab, node: string) => inspectProcess(() => lab.connect(node, { ip: '127.0.0.1', port: 9229 }))

const curl = (lab: MeshLab, path: string, ...more: string[]) =>
  lab.run('n1', 'curl', '-sS', '-m', '9', ...more, `http://127.0.0.1:${path}`)

interface Dump {
  readonly workersWithoutAnswer?: readonly string[]
  readonly workloadState: Readonly<Record<string, { readonly connections?: { readonly outbound: readonly unknown[] } }>>
}

const dumpOf = async (lab: MeshLab): Promise<Dump> => JSON.parse(await curl(lab, '15000/config_dump')) as Dump

/** The sum of a counter of connections that the client's side reports. */
async function counted(lab: MeshLab, name: string): Promise<number> {
  const lines = (await curl(lab, '15020/metrics')).split('\n')
  const values = lines.filter((line) => line.startsWith(`${name}{`)).map((line) => Number(line.split(' ').at(-1)))
  return values.reduce((sum, value) => sum + value, 0)
}

/** How many sockets of the pod listen on the port. */
const listeners = async (lab: MeshLab, pod: string, port: number): Promise<number> =>
  (await lab.run(pod, 'ss', '-Htln', `sport = :${port}`)).split('\n').filter((line) => line !== '').length

const env = { ZTUNNEL_WORKER_THREADS: '2', NODE_OPTIONS: inspectable }

suite('two workers', { skip: canRunLab, timeout: 240_000 }, () => {
  suite('that run', () => {
    let lab: MeshLab
    let proxy: LabProxy
    before(async () => {
      lab = await createEchoLab()
      ;[proxy] = await Promise.all([lab.startProxy('n1', env), lab.startProxy('n2', env)])
    })
    after(() => lab?.[Symbol.asyncDispose]())

    test('both listen for the pod, and what they count is summed and listed together', async () => {
      assert.equal(await listeners(lab, 'client', 15001), 2)
      const before = await counted(lab, 'istio_tcp_connections_opened_total')
      const connections = await connectMany(lab)
      assert.equal(await counted(lab, 'istio_tcp_connections_opened_total'), before + many)
      const { workloadState, workersWithoutAnswer } = await dumpOf(lab)
      assert.equal(workloadState['uid-client']?.connections?.outbound.length, many)
      assert.equal(workersWithoutAnswer, undefined)
      await closeAll(connections)
      await eventually(
        async () => (await counted(lab, 'istio_tcp_connections_closed_total')) === before + many,
        'the end of each connection',
      )
    })

    test('one that stands still holds up its own connections only, is named, and the proxy is not ready while it does', async () => {
      const connections = await connectMany(lab)
      using process = await inspect(lab, 'n1')
      const worker = process.workers.get('worker 1')
      assert.ok(worker, `there is ${[...process.workers.keys()]}`)
      let standsStill = true
      const block = worker.block(9_000).then(() => {
        standsStill = false
      })
      await eventually(
        async () =>
          (await curl(lab, '15021/healthz/ready', '-w', '%{http_code}')) === 'not ready, stuck: worker 1\n503',
        'a failing probe',
      )
      const answered = new Set<EchoConnection>()
      const trips = connections.map(async (connection) => {
        await roundTrip(connection)
        if (standsStill) answered.add(connection)
      })
      await eventually(() => answered.size > 0, 'bytes of the other worker')
      for (const connection of answered) for (let more = 0; more < 20; more += 1) await roundTrip(connection)
      assert.deepEqual((await dumpOf(lab)).workersWithoutAnswer, ['worker 1'])
      assert.ok((await counted(lab, 'istio_tcp_connections_opened_total')) >= many)
      assert.equal(standsStill, true, 'all of this came about while it stood still')
      await Promise.all([block, ...trips])
      assert.ok(answered.size < many, 'both workers had connections')
      await eventually(async () => (await curl(lab, '15021/healthz/ready')) === 'ready\n', 'readiness')
      await proxy.logged(/workers that stand still.*workers=1/)
      await closeAll(connections)
    })

    test('a main thread that stands still holds up neither open connections nor new ones', async () => {
      const connections = await connectMany(lab)
      using process = await inspect(lab, 'n1')
      let standsStill = true
      const block = process.main.block(7_000).then(() => {
        standsStill = false
      })
      const metrics = curl(lab, '15020/metrics').finally(() => assert.equal(standsStill, false))
      for (let round = 0; round < 5; round += 1) await Promise.all(connections.map(roundTrip))
      const fresh = await connectMany(lab)
      await eventually(async () => (await curl(lab, '15021/healthz/ready')) === 'ready\n', 'readiness')
      assert.equal(standsStill, true, 'all of this came about while it stood still')
      await Promise.all([block, metrics])
      await closeAll([...connections, ...fresh])
    })

    test('a change of policies ends the connections of both', async () => {
      const connections = await connectMany(lab)
      const closed = connections.map(closeOf)
      const principal = { matchType: { case: 'exact' as const, value: 'cluster.local/ns/default/sa/client' } }
      lab.controlPlane.setPolicy({
        name: 'deny-client',
        namespace: 'default',
        scope: security.Scope.NAMESPACE,
        action: security.Action.DENY,
        groups: [{ rules: [{ matches: [{ principals: [principal] }] }] }],
      })
      await Promise.all(closed)
      lab.controlPlane.removePolicy('default/deny-client')
      const works = async () => (await exchange(lab, 'client', to, 'x').catch(() => '')) === 'x'
      await eventually(works, 'a connection without the policy')
    })

    test('the tunnels of a peer, one from each of its workers, are spread over both', async () => {
      const connections = await connectMany(lab)
      const text = await lab.run('n2', 'curl', '-sS', '-m', '9', 'http://127.0.0.1:15020/metrics')
      const tunnels = text.split('\n').filter((line) => line.startsWith('lateen_tunnel_connections{'))
      assert.deepEqual(tunnels, [
        'lateen_tunnel_connections{worker="worker 0"} 1',
        'lateen_tunnel_connections{worker="worker 1"} 1',
      ])
      for (let round = 0; round < 3; round += 1) await Promise.all(connections.map(roundTrip))
      await closeAll(connections)
    })

    test('a level of the log reaches both', async () => {
      const opened = () => proxy.log().split('connection opened').length - 1
      const before = opened()
      await curl(lab, '15000/logging?level=access=debug', '-X', 'POST')
      const connections = await connectMany(lab)
      await eventually(() => opened() === before + many, 'a line for each connection')
      await curl(lab, '15000/logging?reset', '-X', 'POST')
      await closeAll(connections)
    })

    test('profiles show each thread', async () => {
      const url = 'http://127.0.0.1:15000/debug/pprof/profile?seconds=1'
      const profile = await lab.run('n1', 'bash', '-c', `curl -sS '${url}' | gunzip`)
      for (const thread of ['main', 'worker 0', 'worker 1']) assert.ok(profile.includes(thread), thread)
    })

    test('a pod that ends, ends on both, and can come back', async () => {
      const connections = await connectMany(lab)
      const closed = connections.map(closeOf)
      const agent = lab.agentOf('n1')
      assert.equal(await agent.remove('uid-client'), '')
      await Promise.all(closed)
      await eventually(async () => (await listeners(lab, 'client', 15001)) === 0, 'no listener')
      const pod = { name: 'client', namespace: 'default', serviceAccount: 'client' }
      assert.equal(await agent.add({ uid: 'uid-client', namespacePath: lab.namespacePath('client'), pod }), '')
      assert.equal(await listeners(lab, 'client', 15001), 2)
      await closeAll(await connectMany(lab))
    })

    test('when the proxy is to end, connections of both may go on until they do', async () => {
      const connections = await connectMany(lab)
      const stopped = proxy.stop()
      await proxy.logged(/shutting down/)
      await eventually(async () => (await listeners(lab, 'client', 15001)) === 0, 'no listener')
      await Promise.all(connections.map(roundTrip))
      await closeAll(connections)
      assert.equal(await stopped, 0)
    })
  })

  test('a certificate that is renewed is in use on both before the old one expires', async () => {
    await using lab = await createEchoLab()
    // Each connection makes a tunnel connection of its own, with the certificate that is then in force.
    const fresh = { POOL_MAX_STREAMS_PER_CONNECTION: '1', POOL_UNUSED_RELEASE_TIMEOUT: '1ms', SECRET_TTL: '8s' }
    await Promise.all([lab.startProxy('n1', { ...env, ...fresh }), lab.startProxy('n2', env)])
    await closeAll(await connectMany(lab))
    const serials = () => lab.controlPlane.issuedSerials('spiffe://cluster.local/ns/default/sa/client')
    const [first] = serials()
    assert.ok(first)
    await eventually(() => serials().length > 2, 'two renewals')
    await closeAll(await connectMany(lab))
  })

  test('what goes wrong in one ends the process, which says why', async () => {
    await using lab = await createEchoLab()
    const [proxy] = await Promise.all([lab.startProxy('n1', env), lab.startProxy('n2', env)])
    const connections = await connectMany(lab)
    const closed = connections.map(closeOf)
    const exited = once(proxy.process, 'exit')
    {
      // The inspector would keep the process until it is let go of.
      using process = await inspect(lab, 'n1')
      await process.workers.get('worker 1')?.run('setTimeout(() => { throw new Error("made to fail") }, 500)')
    }
    assert.deepEqual(await exited, [1, null])
    await Promise.all(closed)
    assert.match(proxy.log(), /\terror\tztunnel\t.*the process ends.*worker 1 failed: Error: made to fail/)
  })

  test('where ports cannot be shared a pod is served by one of them', async () => {
    await using lab = await createEchoLab()
    await Promise.all([lab.startProxy('n1', { ...env, INPOD_PORT_REUSE: 'false' }), lab.startProxy('n2', env)])
    assert.equal(await listeners(lab, 'client', 15001), 1)
    await closeAll(await connectMany(lab))
  })
})
