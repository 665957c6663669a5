// Tunnels in tunnels, through the gateway of another network: both of their ends are watched.
import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { relay, type TlsCredentials, type TunnelRequest } from '../../src/hbone/index.ts'
import { ipToBytes } from '../../src/ztunnel/state/index.ts'
import { client } from '../support/echo-lab.ts'
import { eventually } from '../support/eventually.ts'
import { ignoreErrors, say } from '../support/lab-sockets.ts'
import { canRunLab, createMeshLab, type MeshLab } from '../support/mesh-lab.ts'
import { announcePod, exchange } from '../support/mesh-lab-content.ts'
import { serveMeshTunnels } from '../support/mesh-tunnels.ts'

/** What is run in these by the test itself. */
const gateway = { name: 'gateway', ip: '10.77.2.2' }
const far = { name: 'far', ip: '10.77.2.3' }
const to = { ip: '10.78.0.9', port: 8080 }
const hostname = 'remote.default.svc.cluster.local'
const idOf = (name: string): string => `spiffe://cluster.local/ns/default/sa/${name}`
const revoked = 'connection closed: peer certificate revoked by CRL'

async function credentialsOf(lab: MeshLab, name: string): Promise<TlsCredentials & { readonly serial: string }> {
  const { chain, privateKey } = await lab.controlPlane.issue(idOf(name))
  const { serialNumber: serial } = new X509Certificate(chain)
  return { certificateChain: chain, privateKey, roots: lab.controlPlane.roots, serial }
}

function announceNetwork(lab: MeshLab): void {
  announcePod(lab, client)
  const remote = { namespace: 'default', clusterId: 'c2', network: 'remote', tunnelProtocol: 1 }
  lab.controlPlane.setWorkload({
    ...remote,
    uid: 'gateway',
    name: 'gateway',
    serviceAccount: 'gateway',
    addresses: [ipToBytes(gateway.ip)],
  })
  lab.controlPlane.setWorkload({
    ...remote,
    uid: 'stand-in',
    name: 'stand-in',
    serviceAccount: 'gateway',
    networkGateway: {
      hboneMtlsPort: 15008,
      destination: { case: 'address', value: { network: 'remote', address: ipToBytes(gateway.ip) } },
    },
    services: { [`default/${hostname}`]: { ports: [{ servicePort: 8080, targetPort: 8080 }] } },
  })
  lab.controlPlane.setService({
    name: 'remote',
    namespace: 'default',
    hostname,
    addresses: [{ address: ipToBytes(to.ip) }],
    ports: [{ servicePort: 8080, targetPort: 8080 }],
    subjectAltNames: [idOf('far')],
  })
}

async function buildLab() {
  const lab = await createMeshLab({ pods: [client, gateway, far], nodes: ['n1'] })
  announceNetwork(lab)
  const credentials = { gateway: await credentialsOf(lab, 'gateway'), far: await credentialsOf(lab, 'far') }
  const serve = (name: 'gateway' | 'far', handle: (request: TunnelRequest) => void) =>
    lab.listen(name, 15008, (socket) => {
      ignoreErrors(socket)
      serveMeshTunnels(socket, credentials[name], handle).catch(() => undefined)
    })
  await serve('gateway', (request) => {
    void lab.connect('gateway', { ip: far.ip, port: 15008 }).then((onward) => {
      ignoreErrors(onward)
      relay(request.accept(), { stream: onward, reset: () => onward.resetAndDestroy() })
    })
  })
  const asked: string[] = []
  await serve('far', (request) => {
    asked.push(request.authority)
    const { stream } = request.accept()
    stream.on('error', () => undefined)
    stream.pipe(stream)
  })
  return { lab, credentials, asked }
}

suite('tunnels in tunnels', { skip: canRunLab, timeout: 120_000 }, () => {
  for (const name of ['gateway', 'far'] as const) {
    test(`end when the certificate of the ${name === 'far' ? 'far end' : 'gateway'} is revoked, and none is opened after`, async () => {
      const { lab: built, credentials, asked } = await buildLab()
      await using lab = built
      const list = join(lab.directory, 'n1.crl')
      const proxy = await lab.startProxy('n1', { CRL_PATH: list })
      const open = await lab.connect('client', to)
      ignoreErrors(open)
      assert.equal(await say(open, 'through both'), 'through both')
      assert.deepEqual(asked, [`${hostname}:8080`])
      const closed = new Promise((resolve) => open.once('close', resolve))
      writeFileSync(list, await lab.controlPlane.revocationList([credentials[name].serial]))
      await closed
      assert.match(
        await proxy.logged(/connection complete.*direction="outbound".*error=/),
        new RegExp(`error="${revoked}"`),
      )
      const refused = await lab.connect('client', to)
      ignoreErrors(refused)
      refused.write('more')
      refused.resume()
      await new Promise((resolve) => refused.once('close', resolve))
      assert.equal(asked.length, 1, 'the far end is not asked again')
      const metrics = await lab.run('n1', 'curl', '-sS', '-m', '5', 'http://127.0.0.1:15020/metrics')
      assert.match(metrics, /^istio_crl_policy_rejections_total\{reporter="source"\} 1$/m)
      // Without the lists it is as before.
      rmSync(list)
      await eventually(
        async () => (await exchange(lab, 'client', to, 'again').catch(() => '')) === 'again',
        'a connection',
      )
    })
  }
})
