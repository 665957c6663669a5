// A service with several waypoints: connections are spread over them by their weights.
import assert from 'node:assert/strict'
import type { Duplex } from 'node:stream'
import { after, before, suite, test } from 'node:test'
import { ipToBytes } from '../../src/ztunnel/state/index.ts'
import { client } from '../support/echo-lab.ts'
import { eventually } from '../support/eventually.ts'
import { canRunLab, createMeshLab, type MeshLab } from '../support/mesh-lab.ts'
import { announcePod, exchange, hostnameOf } from '../support/mesh-lab-content.ts'
import { serveMeshTunnels } from '../support/mesh-tunnels.ts'

const waypoints = [
  { name: 'first', ip: '10.77.2.11' },
  { name: 'second', ip: '10.77.2.12' },
  { name: 'third', ip: '10.77.2.13' },
] as const
const to = { ip: '10.78.0.20', port: 80 }
const hbonePort = 15008

suite('weighted waypoints', { skip: canRunLab, timeout: 60_000 }, () => {
  let lab: MeshLab
  /** What the waypoints were asked for. */
  const authorities = new Set<string>()

  before(async () => {
    lab = await createMeshLab({ pods: [client, ...waypoints], nodes: ['n1'] })
    announcePod(lab, client)
    for (const { name, ip } of waypoints) {
      lab.controlPlane.setWorkload({
        uid: name,
        name,
        namespace: 'default',
        serviceAccount: name,
        tunnelProtocol: 1,
        addresses: [ipToBytes(ip)],
      })
      const { chain, privateKey } = await lab.controlPlane.issue(`spiffe://cluster.local/ns/default/sa/${name}`)
      const credentials = { privateKey, certificateChain: chain, roots: lab.controlPlane.roots }
      await lab.listen(name, hbonePort, (socket) => {
        serveMeshTunnels(socket, credentials, (request) => {
          authorities.add(request.authority)
          answer(request.accept().stream, name)
        }).catch(() => undefined)
      })
    }
    await lab.startProxy('n1')
  })
  after(() => lab?.[Symbol.asyncDispose]())

  /** Says who it is to whoever has said all. */
  function answer(stream: Duplex, name: string): void {
    stream.on('error', () => undefined)
    stream.on('end', () => stream.end(name)).resume()
  }
  const announce = (weights: readonly number[], single?: string) =>
    lab.controlPlane.setService({
      name: 'spread',
      namespace: 'default',
      hostname: hostnameOf('spread'),
      addresses: [{ address: ipToBytes(to.ip) }],
      ports: [{ servicePort: 80, targetPort: 8080 }],
      weightedWaypoints: weights.map((weight, index) => ({ destination: gateway(waypoints[index]?.ip ?? ''), weight })),
      ...(single === undefined ? {} : { waypoint: gateway(single) }),
    })
  const gateway = (ip: string) => ({
    destination: { case: 'address' as const, value: { address: ipToBytes(ip) } },
    hboneMtlsPort: hbonePort,
  })
  /** Who answers. What is refused ends, or is reset where bytes of the client are on the way. */
  const ask = async () => (await exchange(lab, 'client', to, 'who').catch(() => '')) || 'nobody'
  /** How many connections each waypoint gets. */
  const spread = async (connections: number): Promise<Readonly<Record<string, number>>> => {
    const counts: Record<string, number> = {}
    for (let left = connections; left > 0; left -= 50) {
      for (const name of await Promise.all(Array.from({ length: Math.min(left, 50) }, ask))) {
        counts[name] = (counts[name] ?? 0) + 1
      }
    }
    return counts
  }

  test('each gets its share, and one of weight 0 nothing', async () => {
    announce([1, 3, 0])
    await eventually(async () => (await ask()) !== 'nobody', 'a waypoint')
    const connections = 400
    const { first = 0, second = 0, ...others } = await spread(connections)
    assert.deepEqual(others, {})
    assert.equal(first + second, connections)
    // A quarter is 100, with a standard deviation of 8.7: these bounds are six of them away, and far from those of other shares.
    assert.ok(first > 48 && first < 152, `the first got ${first} of ${connections}`)
    assert.deepEqual([...authorities], ['10.78.0.20:80'])
  })

  test('a change of the weights counts for the next connections', async () => {
    announce([0, 0, 5])
    await eventually(async () => (await ask()) === 'third', 'the third')
    assert.deepEqual(await spread(100), { third: 100 })
  })

  test('where none has weight, the single waypoint is taken', async () => {
    announce([0, 0, 0], waypoints[0].ip)
    await eventually(async () => (await ask()) === 'first', 'the first')
    assert.deepEqual(await spread(50), { first: 50 })
  })

  test('of weighted waypoints, one that is gone is not passed by: its share is refused', async () => {
    lab.controlPlane.removeAddress('second')
    announce([1, 1, 0])
    await eventually(async () => (await ask()) === 'nobody', 'a refusal')
    const { first = 0, nobody = 0, ...others } = await spread(100)
    assert.deepEqual(others, {})
    assert.ok(first > 20 && nobody > 20, `${first} got through, ${nobody} were refused`)
  })
})
