// Settings of the node proxy, seen from outside: what it listens on, what it tells the control plane, what it does without one.
import assert from 'node:assert/strict'
import { after, afterEach, before, suite, test } from 'node:test'
import { client, echo, outsider } from '../support/echo-lab.ts'
import { eventually } from '../support/eventually.ts'
import { answerBack } from '../support/lab-sockets.ts'
import { canRunLab, createMeshLab, type LabProxy, type MeshLab } from '../support/mesh-lab.ts'
import { announcePod, announceService, exchange, hostnameOf } from '../support/mesh-lab-content.ts'

suite('settings of a node proxy', { skip: canRunLab, timeout: 120_000 }, () => {
  let lab: MeshLab
  const running: LabProxy[] = []

  before(async () => {
    lab = await createMeshLab({ pods: [client, outsider], nodes: ['n1'] })
    announcePod(lab, client)
    announceService(lab, echo)
    await lab.listen('outsider', 8080, answerBack)
    await lab.listen('client', 8081, answerBack)
  })
  after(() => lab?.[Symbol.asyncDispose]())
  afterEach(async () => {
    await Promise.all(running.splice(0).map((proxy) => proxy.stop('SIGKILL')))
  })

  const start = async (env: Readonly<Record<string, string>>) => {
    const proxy = await lab.startProxy('n1', { ZTUNNEL_WORKER_THREADS: '1', ...env })
    running.push(proxy)
    return proxy
  }
  /** Local addresses in the pod, by transport. */
  const listening = (): readonly string[] =>
    lab
      .exec('client', 'ss', '-Hlntu')
      .trim()
      .split('\n')
      .map((line) => line.split(/\s+/))
      .map(([transport, , , , address = '']) => `${transport} ${address.replace('*', '[::]')}`)
      .filter((one) => !one.endsWith(':8081'))
      .sort()
  const ask = (name: string, type: 'A' | 'AAAA', server = '10.77.0.1') => {
    const script = `
      const { Resolver } = require('node:dns/promises')
      const resolver = new Resolver({ timeout: 2000, tries: 1 })
      resolver.setServers([process.argv[3]])
      resolver.resolve(process.argv[1], process.argv[2]).then((found) => console.log(found.join()), (error) => console.log(error.code))`
    return lab.run('client', process.execPath, '-e', script, name, type, server)
  }

  test('a pod is listened in for connections and, on loopback of both families, for DNS', async () => {
    await start({})
    assert.deepEqual(listening(), [
      'tcp 127.0.0.1:15053',
      'tcp [::1]:15053',
      'tcp [::]:15001',
      'tcp [::]:15006',
      'tcp [::]:15008',
      'udp 127.0.0.1:15053',
      'udp [::1]:15053',
    ])
    assert.equal(await ask(hostnameOf('echo'), 'AAAA'), 'fd78::9\n')
  })

  test('IPV6_ENABLED=false: over IPv4 only, and no IPv6 address is told', async () => {
    await start({ IPV6_ENABLED: 'false' })
    assert.deepEqual(listening(), [
      'tcp 0.0.0.0:15001',
      'tcp 0.0.0.0:15006',
      'tcp 0.0.0.0:15008',
      'tcp 127.0.0.1:15053',
      'udp 127.0.0.1:15053',
    ])
    assert.equal(await ask(hostnameOf('echo'), 'AAAA'), 'ENODATA\n')
    assert.equal(await ask(hostnameOf('echo'), 'A'), '10.78.0.9\n')
  })

  test('ENABLE_PROXY=false: DNS alone', async () => {
    await start({ ENABLE_PROXY: 'false', IPV6_ENABLED: 'false' })
    assert.deepEqual(listening(), ['tcp 127.0.0.1:15053', 'udp 127.0.0.1:15053'])
    assert.equal(await ask(hostnameOf('echo'), 'A'), '10.78.0.9\n')
  })

  test('without DNS no name is answered here; DNS_PROXY_ADDR says where else it is', async () => {
    await start({ ISTIO_META_DNS_CAPTURE: 'false', IPV6_ENABLED: 'false' })
    assert.deepEqual(
      listening().filter((one) => one.endsWith('53')),
      [],
    )
    await Promise.all(running.splice(0).map((proxy) => proxy.stop('SIGKILL')))
    await start({ ISTIO_META_DNS_PROXY_ADDR: '127.0.0.2:5353' })
    assert.deepEqual(
      listening().filter((one) => one.endsWith('53')),
      ['tcp 127.0.0.2:5353', 'udp 127.0.0.2:5353'],
    )
    assert.equal(await ask(hostnameOf('echo'), 'A', '127.0.0.2:5353'), '10.78.0.9\n')
  })

  test('the control plane is told who asks, with the headers and metadata that are set', async () => {
    const { headers, nodes } = lab.controlPlane
    const before = { xds: headers.xds.length, ca: headers.ca.length, nodes: nodes.length }
    await start({
      CLUSTER_ID: 'other',
      ISTIO_META_CLUSTER_ID: 'c1',
      POD_NAME: 'zt-1',
      POD_NAMESPACE: 'istio-system',
      INSTANCE_IP: '10.77.1.1',
      ISTIO_META_COLOR: 'blue',
      ISTIO_METAJSON_SHAPE: '{"sides":4}',
      XDS_HEADER_X_STREAM: 'one',
      CA_HEADER_X_SIGN: 'two',
    })
    await eventually(() => headers.ca.length > before.ca, 'a request for a certificate')
    const [stream] = headers.xds.slice(before.xds)
    const [request] = headers.ca.slice(before.ca)
    const common = { authorization: 'Bearer test-token', clusterid: 'c1' }
    const of = (all: Readonly<Record<string, unknown>> | undefined) =>
      Object.fromEntries(['authorization', 'clusterid', 'x_stream', 'x_sign'].map((name) => [name, all?.[name]]))
    assert.deepEqual(of(stream), { ...common, x_stream: 'one', x_sign: undefined })
    assert.deepEqual(of(request), { ...common, x_stream: undefined, x_sign: 'two' })
    const [node] = nodes.slice(before.nodes)
    assert.equal(node?.id, 'ztunnel~10.77.1.1~zt-1.istio-system~istio-system.svc.cluster.local')
    assert.deepEqual(node?.metadata, {
      NAME: 'zt-1',
      NAMESPACE: 'istio-system',
      INSTANCE_IPS: '10.77.1.1',
      NODE_NAME: 'n1',
      CLUSTER_ID: 'c1',
      COLOR: 'blue',
      SHAPE: { sides: 4 },
    })
  })

  test('CLUSTER_DOMAIN is where the short names of services are looked for', async () => {
    lab.controlPlane.setService({
      name: 'far',
      namespace: 'default',
      hostname: 'far.default.svc.mesh.example',
      addresses: [{ address: new Uint8Array([10, 78, 0, 10]) }],
    })
    await start({ CLUSTER_DOMAIN: 'mesh.example' })
    await eventually(async () => (await ask('far.default.svc', 'A')) === '10.78.0.10\n', 'an answer')
    lab.controlPlane.removeAddress('default/far.default.svc.mesh.example')
  })

  test('with a local file and no control plane: ready at once, policies in force, tunnels refused for want of a CA', async () => {
    const workload = (uid: string, ip: string, protocol: string) =>
      `{uid: ${uid}, name: ${uid}, namespace: default, serviceAccount: ${uid}, workloadIps: ["${ip}"], protocol: ${protocol}, node: n1, services: {}}`
    const policy =
      '{name: p, namespace: default, scope: Namespace, action: Deny, dryRun: false, rules: [[[{destinationPorts: [8081]}]]]}'
    const workloads = [workload('client', client.ip, 'HBONE'), workload('meshed', '10.77.2.9', 'HBONE')]
    const env = { XDS_ADDRESS: '', CA_ADDRESS: '', LOCAL_XDS: `workloads: [${workloads}]\npolicies: [${policy}]` }
    const proxy = await start(env)
    assert.equal(await lab.run('n1', 'curl', '-sS', '-m', '2', 'http://127.0.0.1:15021/healthz/ready'), 'ready\n')
    assert.equal(await exchange(lab, 'client', { ip: outsider.ip, port: 8080 }, 'out'), 'out')
    await exchange(lab, 'outsider', { ip: client.ip, port: 8081 }, 'in').catch(() => '')
    await proxy.logged(/error="connection closed due to policy rejection: explicitly denied by: default\/p"/)
    await exchange(lab, 'client', { ip: '10.77.2.9', port: 80 }, 'x').catch(() => '')
    await proxy.logged(/error="identity error: no certificate authority is configured"/)
  })
})
