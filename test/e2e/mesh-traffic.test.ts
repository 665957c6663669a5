// Traffic through the mesh of `lateen up`: whatever applications do, it behaves as it would without a mesh.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { join } from 'node:path'
import test, { after, before } from 'node:test'
import { instancePaths } from '../../src/standalone/index.ts'
import { type MeshInstance, needsRoot, startMeshInstance } from '../support/mesh-instance.ts'
import { inMesh, namespaceManifest, podManifest, podProgram, serviceManifest } from '../support/mesh-manifests.ts'
import { talk } from '../support/mesh-pod.ts'

const options = { skip: needsRoot, timeout: 120_000 }
const manifests = [
  namespaceManifest('default', inMesh),
  namespaceManifest('plain'),
  podManifest('server', 'node-1'),
  podManifest('near', 'node-1'),
  podManifest('client', 'node-2'),
  podManifest('on-node', 'node-2', { spec: { hostNetwork: true, dnsPolicy: 'ClusterFirstWithHostNet' } }),
  podManifest('outside', 'node-2', { namespace: 'plain' }),
  serviceManifest('server', 'server'),
  serviceManifest('headless', 'server', { clusterIP: 'None' }),
  serviceManifest('own', 'client'),
  serviceManifest('nobody', 'nobody'),
  serviceManifest('at-node', 'server', { type: 'NodePort' }),
].join('')

let mesh: MeshInstance
let address: Record<string, string>

before(async () => {
  if (needsRoot) return
  mesh = await startMeshInstance()
  await mesh.apply(manifests)
  const names = ['server', 'near', 'client', 'on-node', 'plain/outside']
  const pods = await Promise.all(names.map((name) => mesh.pod(name)))
  address = Object.fromEntries(pods.map(({ metadata, status }) => [metadata.name, status?.podIP ?? '']))
}, options)

after(async () => {
  await mesh?.[Symbol.asyncDispose]()
}, options)

/** What the program says when the pod makes the call. */
async function call(from: string, what: string, to: string, ...words: string[]): Promise<string> {
  const { code, output } = await mesh.exec(from, ...podProgram, what, to, ...words)
  assert.equal(code, 0, `${from} ${what} ${to}: ${output}`)
  return output.trimEnd()
}

const places = {
  'by service': () => 'server',
  'by full name': () => 'server.default.svc.cluster.local',
  'by headless service': () => 'headless.default',
  'by address': () => address.server ?? '',
}

for (const from of ['client', 'near', 'plain/outside']) {
  for (const [place, to] of Object.entries(places)) {
    test(`${from} → server ${place}: half-close, server-first, checksum, source address`, options, async () => {
      const name = from === 'plain/outside' && !to().includes('.') ? `${to()}.default` : to()
      assert.equal(await call(from, 'echo', name), 'hello')
      assert.equal(await call(from, 'banner', name), `server ${address[from.split('/').at(-1) ?? '']}`)
      assert.equal(await call(from, 'upload', name, '3000000'), 'same 3000000')
      assert.equal(await call(from, 'download', name, '3000000'), 'same 3000000')
    })
  }
}

test('100 MB each way arrive as sent', options, async () => {
  assert.equal(await call('client', 'upload', 'server', '100000000'), 'same 100000000')
  assert.equal(await call('client', 'download', 'server', '100000000'), 'same 100000000')
})

test('1,000 connections at once', options, async () => {
  assert.equal(await call('client', 'many', 'server', '1000'), 'right 1000')
})

test('a reader that takes its time gets everything', options, async () => {
  assert.equal(await call('client', 'download', 'server', '20000000', '5'), 'same 20000000')
})

test('datagrams pass, of all sizes', options, async () => {
  for (const size of ['1', '1400', '9000', '60000']) {
    for (const to of ['server', address.server ?? '']) {
      assert.equal(await call('client', 'udp', to, size), `same ${size}`)
    }
  }
})

test('a pod reaches itself: by localhost, by its address, by its own service', options, async () => {
  for (const to of ['127.0.0.1', 'localhost', address.client ?? '', 'own']) {
    assert.equal(await call('client', 'echo', to), 'hello', to)
  }
})

test('a call to a port where nobody listens fails, as does one to a service without endpoints', options, async () => {
  assert.match(await call('client', 'refused', address.server ?? '', '9'), /ECONNREFUSED|ECONNRESET|after 0 bytes/)
  assert.match(await call('client', 'refused', 'nobody', String(talk.echo)), /ECONNREFUSED|ECONNRESET|after 0 bytes/)
  assert.match(await call('plain/outside', 'refused', 'nobody.default', String(talk.echo)), /ECONNREFUSED/)
})

test('pods on the network of a node take part', options, async () => {
  assert.equal(await call('on-node', 'echo', address.server ?? ''), 'hello')
  assert.equal(await call('on-node', 'echo', 'server.default.svc.cluster.local'), 'hello')
  assert.equal(await call('client', 'echo', address['on-node'] ?? ''), 'hello')
})

test('the host reaches pods, services and node ports', options, async () => {
  const { output } = await mesh.kubectl('get', 'svc', 'server', 'at-node', '-o', 'json')
  const [ip, port] = JSON.parse(output)
    .items.map((one: { spec: { clusterIP: string; ports: { nodePort: number }[] } }) => [
      one.spec.clusterIP,
      one.spec.ports.find((_, index) => index === 4)?.nodePort,
    ])
    .reduce((all: [string, number], one: [string, number | undefined]) => [all[0] || one[0], one[1] ?? all[1]], ['', 0])
  const nodeIP = address['on-node'] ?? ''
  for (const url of [
    `http://${address.server}:${talk.http}/`,
    `http://${ip}:${talk.http}/`,
    `http://${nodeIP}:${port}/`,
  ]) {
    assert.match(execFileSync('curl', ['-sS', '-m', '5', url], { encoding: 'utf8' }), /^server /, url)
  }
})

test('what is outside the mesh is reached as ever: the host, the API server', options, async () => {
  const server = createServer((socket) => socket.end(`outside ${socket.remoteAddress}`)).listen(0, '0.0.0.0')
  await once(server, 'listening')
  try {
    const { port } = server.address() as { port: number }
    const plan = JSON.parse(execFileSync('cat', [join(mesh.stateDir, 'network.json')], { encoding: 'utf8' })) as {
      hostIP: string
    }
    assert.match(await call('client', 'refused', plan.hostIP, String(port)), /after [1-9]\d* bytes/)
    const api = await mesh.exec('client', 'curl', '-sSk', '-m', '5', 'https://kubernetes.default.svc/version')
    assert.match(api.output, /gitVersion/)
  } finally {
    server.close()
  }
})

test('names: services, headless services, ports, absent names, over UDP and TCP', options, async () => {
  const resolve = `
    const { Resolver } = require('node:dns/promises')
    const one = async (what, name) => {
      try { return JSON.stringify(await new Resolver().resolve(name, what)) } catch (error) { return error.code }
    }
    const [, ...words] = process.argv
    one(...words).then(console.log)`
  const ask = async (type: string, name: string) =>
    (await mesh.exec('client', process.execPath, '-e', resolve, type, name)).output.trim()
  assert.match(await ask('A', 'server.default.svc.cluster.local'), /^\["10\.\d+\.\d+\.\d+"\]$/)
  assert.equal(await ask('A', 'headless.default.svc.cluster.local'), `["${address.server}"]`)
  assert.match(await ask('AAAA', 'server.default.svc.cluster.local'), /ENODATA/)
  assert.match(await ask('SRV', '_tcp-echo._tcp.headless.default.svc.cluster.local'), /"port":9000/)
  assert.match(await ask('A', 'absent.default.svc.cluster.local'), /ENOTFOUND/)
  assert.match(await ask('A', 'absent.example'), /ENOTFOUND|ESERVFAIL|EREFUSED|ETIMEOUT/)
})

test('lost packets slow down and harm nothing', options, async () => {
  const { instance } = instancePaths(mesh.stateDir)
  const inNode = (...words: string[]) =>
    execFileSync('ip', ['netns', 'exec', `lateen-${instance}-node-1`, 'nft', ...words], { stdio: 'pipe' })
  inNode('add table inet lossy')
  inNode('add chain inet lossy c { type filter hook prerouting priority -400; }')
  inNode('add rule inet lossy c iifname "eth0" numgen random mod 100 < 2 drop')
  try {
    assert.equal(await call('client', 'upload', 'server', '2000000'), 'same 2000000')
    assert.equal(await call('client', 'download', 'server', '2000000'), 'same 2000000')
    assert.equal(await call('client', 'many', 'server', '50'), 'right 50')
  } finally {
    inNode('delete table inet lossy')
  }
})
