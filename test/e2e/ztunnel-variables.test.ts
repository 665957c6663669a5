// What variables of the node proxy do to what others see of it: two proxies that differ in all of them.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import http2 from 'node:http2'
import type net from 'node:net'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import tls from 'node:tls'
import { client, createEchoLab, echoTo, outsider, server } from '../support/echo-lab.ts'
import { eventually } from '../support/eventually.ts'
import { ignoreErrors, say } from '../support/lab-sockets.ts'
import { canRunLab, type LabProxy, type MeshLab } from '../support/mesh-lab.ts'
import { exchange, hostnameOf } from '../support/mesh-lab-content.ts'

const own = { ip: '10.77.1.1', identity: 'spiffe://own.example/ns/mesh/sa/proxy' }
const localFile = `
workloads:
- {uid: proxy, name: proxy, namespace: mesh, serviceAccount: proxy, workloadIps: [${own.ip}], trustDomain: cluster.local, protocol: HBONE, node: n1, services: {}}
- {uid: client, name: client, namespace: default, serviceAccount: client, workloadIps: [${client.ip}], trustDomain: cluster.local, protocol: HBONE, node: n1, services: {}}
- {uid: server, name: server, namespace: default, serviceAccount: server, workloadIps: [${server.ip}], trustDomain: cluster.local, protocol: HBONE, node: n2, services: {default/${hostnameOf('echo')}: {80: 8080}}}
services:
- {name: echo, namespace: default, hostname: ${hostnameOf('echo')}, vips: [/${echoTo.ip}], ports: {80: 8080}}
`
const meshFile = (controlPlane: string) => `
defaultConfig:
  discoveryAddress: ${controlPlane}
  proxyAdminPort: 16000
  statsPort: 16120
  concurrency: 1
`
const postQuantum = 'X25519MLKEM768'

suite('variables of a node proxy', { skip: canRunLab, timeout: 120_000 }, () => {
  let lab: MeshLab
  let clientProxy: LabProxy
  let serverProxy: LabProxy

  before(async () => {
    lab = await createEchoLab({ pods: [outsider] })
    const local = join(lab.directory, 'local.yaml')
    writeFileSync(local, localFile)
    mkdirSync(join(lab.directory, 'etc/istio/config'), { recursive: true })
    const { address } = lab.controlPlane
    writeFileSync(join(lab.directory, 'etc/istio/config/mesh'), meshFile(address.replace('https://', '')))
    ;[clientProxy, serverProxy] = await Promise.all([
      lab.startProxy('n1', {
        XDS_ADDRESS: '',
        LOCAL_XDS_PATH: local,
        POD_NAME: 'proxy',
        POD_NAMESPACE: 'mesh',
        SERVICE_ACCOUNT: 'proxy',
        TRUST_DOMAIN: 'own.example',
        KEEPALIVE_ENABLED: 'false',
        HTTP2_STREAM_WINDOW_SIZE: '100000',
        HTTP2_CONNECTION_WINDOW_SIZE: '400000',
        HTTP2_FRAME_SIZE: '20000',
        TLS12_ENABLED: 'true',
        TERMINATION_GRACE_PERIOD_SECONDS: '2',
        ZTUNNEL_RESOURCE_CPU_LIMIT: '2500m',
      }),
      lab.startProxy(
        'n2',
        { XDS_ADDRESS: undefined, CA_ADDRESS: undefined, PROXY_CONFIG: '{statsPort: 16020}', COMPLIANCE_POLICY: 'pqc' },
        { directory: lab.directory },
      ),
    ])
  })
  after(() => lab?.[Symbol.asyncDispose]())

  const meshIdentity = (name: string) => `spiffe://cluster.local/ns/default/sa/${name}`
  /** What a proxy says of itself to one that connects to its port for tunnels. Rejects when either side refuses. */
  const greet = async (
    ip: string,
    { as = meshIdentity('outsider'), ...more }: tls.ConnectionOptions & { as?: string } = {},
  ) => {
    const { chain, privateKey } = await lab.controlPlane.issue(as)
    const transport = await lab.connect('outsider', { ip, port: 15008 })
    // A peer that ends has left.
    transport.allowHalfOpen = false
    const socket = tls.connect({
      socket: transport,
      cert: chain,
      key: privateKey,
      ca: lab.controlPlane.roots,
      ALPNProtocols: ['h2'],
      checkServerIdentity: () => undefined,
      ...more,
    })
    const session = http2.connect('https://mesh', { createConnection: () => socket })
    const closed = new Promise<void>((resolve) => session.once('close', resolve))
    const refused = Promise.race([once(session, 'error'), closed]).then(() => {
      throw new Error('refused')
    })
    refused.catch(() => undefined)
    try {
      const [{ initialWindowSize, maxFrameSize }] = (await Promise.race([
        once(session, 'remoteSettings'),
        refused,
      ])) as [http2.Settings]
      // The window of the connection is widened right behind the settings.
      await new Promise<void>((resolve, reject) => session.ping((error) => (error ? reject(error) : resolve())))
      return {
        identity: socket.getPeerCertificate().subjectaltname,
        protocol: socket.getProtocol(),
        windows: [initialWindowSize, session.state.remoteWindowSize, maxFrameSize],
      }
    } finally {
      session.destroy()
      await closed
    }
  }
  const metrics = (node: string, port: number): Promise<string> =>
    lab.run(node, 'curl', '-sS', '-m', '9', `http://127.0.0.1:${port}/metrics`)
  const openEcho = async (): Promise<net.Socket> => {
    const socket = await lab.connect('client', echoTo)
    ignoreErrors(socket)
    assert.equal(await say(socket, 'open'), 'open')
    return socket
  }

  test('LOCAL_XDS_PATH: the mesh is that of the file, without a control plane for it', async () => {
    assert.equal(await exchange(lab, 'client', echoTo, 'by the file'), 'by the file')
    const line = await clientProxy.logged(/connection complete.*dst\.service="echo\.default.*direction="outbound"/)
    assert.match(line, /dst\.identity="spiffe:\/\/cluster\.local\/ns\/default\/sa\/server"/)
  })

  test('the mesh file names the control plane and ports; PROXY_CONFIG has precedence', async () => {
    const dump = await lab.run('n2', 'curl', '-sS', '-m', '9', 'http://127.0.0.1:16000/config_dump')
    assert.ok(dump.includes('c1//Pod/default/client'), 'what the control plane told')
    assert.match(await metrics('n2', 16020), /^istio_xds_message_total\{/m)
    await assert.rejects(metrics('n2', 16120))
  })

  test('TRUST_DOMAIN: the proxy itself is of it, and takes tunnels from it alone; its pods are not', async () => {
    const peer = 'spiffe://own.example/ns/default/sa/outsider'
    assert.equal((await greet(own.ip, { as: peer })).identity, `URI:${own.identity}`)
    await assert.rejects(greet(own.ip))
    assert.equal((await greet(client.ip)).identity, `URI:${meshIdentity('client')}`)
    await assert.rejects(greet(client.ip, { as: peer }))
  })

  test('KEEPALIVE_ENABLED=false: no connection is looked after, where others are', async () => {
    const socket = await openEcho()
    const kept = async (pod: string, filter: string) => {
      const lines = (await lab.run(pod, 'ss', '-Htno', 'state', 'established', filter)).trim().split('\n')
      return { all: lines.length, kept: lines.filter((line) => line.includes('timer:(keepalive')).length }
    }
    // While something is under way another timer is shown.
    await eventually(async () => {
      const { all, kept: cared } = await kept('server', `( sport = :15008 )`)
      return all > 0 && cared === all
    }, 'keepalive of tunnels that arrive')
    await eventually(
      async () => (await kept('server', `( dport = :8080 )`)).kept > 0,
      'keepalive towards the application',
    )
    const { all, kept: none } = await kept('client', '( sport != :1 )')
    assert.ok(all >= 3, `of the application, of the proxy towards it, and the tunnel, there are ${all}`)
    assert.equal(none, 0)
    socket.destroy()
  })

  test('HTTP2_…: the windows and the frames are those that are set', async () => {
    assert.deepEqual((await greet(client.ip)).windows, [100_000, 400_000, 20_000])
    assert.deepEqual((await greet(own.ip, { as: own.identity })).windows, [100_000, 400_000, 20_000])
    assert.deepEqual((await greet(server.ip)).windows, [4 * 1024 * 1024, 16 * 1024 * 1024, 1024 * 1024])
  })

  test('TLS12_ENABLED: TLS 1.2 is spoken with those who have no better, and only then', async () => {
    const old = { maxVersion: 'TLSv1.2' } as const
    assert.equal((await greet(client.ip, old)).protocol, 'TLSv1.2')
    assert.equal((await greet(client.ip)).protocol, 'TLSv1.3')
    await assert.rejects(greet(server.ip, old))
    await serverProxy.logged(/connection failed.*error="tls handshake error: unsupported protocol"/)
  })

  test('COMPLIANCE_POLICY=pqc: key exchange by the group of the policy alone', async () => {
    assert.equal((await greet(server.ip, { ecdhCurve: postQuantum })).protocol, 'TLSv1.3')
    await assert.rejects(greet(server.ip, { ecdhCurve: 'X25519:P-256:P-384' }))
    await serverProxy.logged(/connection failed.*error="tls handshake error: no suitable key share"/)
    assert.equal((await greet(client.ip, { ecdhCurve: 'X25519' })).protocol, 'TLSv1.3')
  })

  test('workers: as many as the CPU limit says, or the proxy config; each counts its processor time', async () => {
    for (const [node, port, workers] of [
      ['n1', 15020, 3],
      ['n2', 16020, 1],
    ] as const) {
      const value = (text: string, series: string) =>
        Number(
          text
            .split('\n')
            .find((line) => line.startsWith(`${series} `))
            ?.split(' ')
            .at(-1),
        )
      const names = ['main', ...Array.from({ length: workers }, (_, index) => `worker ${index}`)]
      const secondsOf = (text: string) =>
        names.map((name) => value(text, `lateen_thread_cpu_seconds_total{worker="${name}"}`))
      const text = await metrics(node, port)
      assert.equal(value(text, 'ztunnel_worker_threads'), workers)
      assert.equal(text.match(/^lateen_thread_cpu_seconds_total\{/gm)?.length, names.length)
      const seconds = secondsOf(text)
      assert.ok(
        seconds.every((one) => one > 0),
        `${seconds}`,
      )
      const sum = seconds.reduce((all, one) => all + one, 0)
      assert.ok(sum <= value(text, 'process_cpu_seconds_total'), 'threads use no more than the process')
      await eventually(async () => {
        const later = secondsOf(await metrics(node, port))
        return later.every((one, index) => one > (seconds[index] ?? Number.NaN))
      }, 'more of it, by every thread')
    }
  })

  test('TERMINATION_GRACE_PERIOD_SECONDS: connections go on until a second before its end', async () => {
    const socket = await openEcho()
    const closed = new Promise((resolve) => socket.once('close', resolve))
    const stopped = clientProxy.stop()
    await clientProxy.logged(/shutting down: waiting for connections to end\sdeadlineMs=1000\b/)
    await closed
    assert.equal(await stopped, 0)
    assert.match(clientProxy.log(), /drain duration expired/)
  })
})
