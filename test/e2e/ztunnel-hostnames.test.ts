// Workloads that are known by a host name only: the proxy asks its own name servers, and counts.
import assert from 'node:assert/strict'
import dgram from 'node:dgram'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import type net from 'node:net'
import { after, before, suite, test } from 'node:test'
import { createSocket, openNetworkNamespace } from '../../src/linux/index.ts'
import { ipToBytes } from '../../src/ztunnel/state/index.ts'
import { eventually } from '../support/eventually.ts'
import { canRunLab, createMeshLab, ipv6Of, type LabProxy, type MeshLab } from '../support/mesh-lab.ts'
import { announcePod, announceService, exchange, hostnameOf } from '../support/mesh-lab-content.ts'

const client = { name: 'client', ip: '10.77.2.1', node: 'n1' }
const outsider = { name: 'outsider', ip: '10.77.2.3' }
const nameServer = '10.77.0.1'

/** Services, each with one workload of which only this name is known, and what the name servers say of it. */
const backends = {
  both: { vip: '10.78.0.1', hostname: 'both.example', A: [outsider.ip], AAAA: [ipv6Of(outsider.ip)] },
  other: { vip: '10.78.0.2', hostname: 'other-family.example', A: [], AAAA: [ipv6Of(outsider.ip)] },
  empty: { vip: '10.78.0.3', hostname: 'empty.example', A: [], AAAA: [] },
  unknown: { vip: '10.78.0.4', hostname: 'unknown.example' },
  /** Of which they say nothing at all. */
  silent: { vip: '10.78.0.5', hostname: 'silent.example' },
} as const

const types = { 1: 'A', 28: 'AAAA' } as const

/** Answers as the backends say; a name of none of them does not exist. */
function answerTo(query: Buffer, asked: string[]): Buffer | undefined {
  let end = 12
  while (query.readUInt8(end) !== 0) end += query.readUInt8(end) + 1
  const labels: string[] = []
  for (let at = 12; at < end; at += query.readUInt8(at) + 1) {
    labels.push(query.toString('latin1', at + 1, at + 1 + query.readUInt8(at)))
  }
  const name = labels.join('.').toLowerCase()
  const number = query.readUInt16BE(end + 1)
  const type = number === 1 || number === 28 ? types[number] : undefined
  asked.push(`${name} ${type}`)
  if (name === backends.silent.hostname) return undefined
  const backend = Object.values(backends).find(({ hostname }) => hostname === name)
  const known = backend !== undefined && 'A' in backend ? backend : undefined
  const addresses = (type === undefined ? undefined : known?.[type]) ?? []
  const head = Buffer.alloc(12)
  query.copy(head, 0, 0, 2)
  head.writeUInt16BE(0x8180 | (known === undefined ? 3 : 0), 2)
  head.writeUInt16BE(1, 4)
  head.writeUInt16BE(addresses.length, 6)
  const records = addresses.map((ip) => {
    const data = ipToBytes(ip)
    const record = Buffer.from([0xc0, 12, 0, number, 0, 1, 0, 0, 1, 0, 0, data.length])
    return Buffer.concat([record, data])
  })
  return Buffer.concat([head, query.subarray(12, end + 5), ...records])
}

suite('workloads known by host name', { skip: canRunLab, timeout: 60_000 }, () => {
  let lab: MeshLab
  let proxy: LabProxy
  const asked: string[] = []
  const stack = new AsyncDisposableStack()

  before(async () => {
    lab = stack.use(await createMeshLab({ pods: [client, outsider], nodes: ['n1'] }))
    announcePod(lab, client)
    for (const [name, { vip, hostname }] of Object.entries(backends)) {
      announceService(lab, { name, vips: [vip], ports: { 80: 8080 } })
      const ports = [{ servicePort: 80, targetPort: 8080 }]
      lab.controlPlane.setWorkload({
        uid: `c1//ServiceEntry/default/${name}`,
        name,
        namespace: 'default',
        hostname,
        services: { [`default/${hostnameOf(name)}`]: { ports } },
      })
    }
    for (const ip of [outsider.ip, ipv6Of(outsider.ip)]) {
      await lab.listen('outsider', 8080, (socket: net.Socket) => void socket.pipe(socket), ip)
    }
    using namespace = openNetworkNamespace(lab.namespacePath('fabric'))
    const { fd } = createSocket({ family: 4, type: 'datagram', bind: { ip: nameServer, port: 53 } }, namespace)
    const server = dgram.createSocket('udp4')
    stack.defer(() => void server.close())
    server.on('message', (query, { address, port }) => {
      const answer = answerTo(query, asked)
      if (answer !== undefined) server.send(answer, port, address)
    })
    // With a descriptor it is bound before this returns.
    server.bind({ fd })
    // What `ip netns exec` shows its programs as /etc/resolv.conf.
    const settings = `/etc/netns/${lab.namespaceName('n1')}`
    mkdirSync(settings, { recursive: true })
    stack.defer(() => rmSync(settings, { recursive: true }))
    writeFileSync(`${settings}/resolv.conf`, `nameserver ${nameServer}\n`)
    proxy = await lab.startProxy('n1', { ZTUNNEL_WORKER_THREADS: '1' })
  })
  after(() => stack.disposeAsync())

  const call = (name: keyof typeof backends) =>
    exchange(lab, 'client', { ip: backends[name].vip, port: 80 }, 'hello').catch(() => '')

  test('one of its addresses is used, of the family of the client, and remembered for its time', async () => {
    assert.equal(await call('both'), 'hello')
    assert.equal(await call('both'), 'hello')
    await proxy.logged(/connection complete.*dst\.addr=10\.77\.2\.3:8080.*dst\.service="both\.default/)
    assert.deepEqual(
      asked.filter((question) => question.startsWith('both.')),
      ['both.example A'],
    )
  })

  test('where there is none of the family, of the other', async () => {
    assert.equal(await call('other'), 'hello')
    await proxy.logged(/connection complete.*dst\.addr=\[fd77::2:3\]:8080.*dst\.service="other\.default/)
  })

  test('a name without addresses, and one that is not known, are refused and told apart', async () => {
    assert.equal(await call('empty'), '')
    await proxy.logged(
      /connection failed.*error="ip addresses were resolved for workload c1\/\/ServiceEntry\/default\/empty, but valid dns response had no A\/AAAA records"/,
    )
    assert.equal(await call('unknown'), '')
    await proxy.logged(
      /connection failed.*error="no ip addresses were resolved for workload: c1\/\/ServiceEntry\/default\/unknown"/,
    )
  })

  test('while name servers say nothing the client may give up', async () => {
    const client = await lab.connect('client', { ip: backends.silent.vip, port: 80 })
    client.on('error', () => undefined)
    await eventually(() => asked.includes('silent.example A'), 'a question')
    client.resetAndDestroy()
    await proxy.logged(/connection failed.*dst\.addr=10\.78\.0\.5:80.*error="client gone"/)
  })

  test('each connection that needed a name is counted, by name and by who asked', async () => {
    const metrics = await lab.run('n1', 'curl', '-sS', '-m', '5', 'http://127.0.0.1:15020/metrics')
    const counted = metrics.split('\n').filter((line) => line.startsWith('istio_on_demand_dns_total{'))
    const byName = counted.map((line) => [/hostname="([^"]+)"/.exec(line)?.[1], Number(line.split(' ').at(-1))])
    assert.deepEqual(Object.fromEntries(byName), {
      'both.example': 2,
      'other-family.example': 1,
      'empty.example': 1,
      'unknown.example': 1,
      'silent.example': 1,
    })
    for (const line of counted) {
      assert.match(
        line,
        /source_workload="client".*source_principal="spiffe:\/\/cluster\.local\/ns\/default\/sa\/client"/,
      )
    }
  })
})
