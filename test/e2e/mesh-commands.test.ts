// What a person asks of the control planes of a mesh that runs: its proxies, and the clusters it is made of.
import assert from 'node:assert/strict'
import test, { after, before } from 'node:test'
import { type KubeObject, resources } from '../../src/api/index.ts'
import { type MeshInstance, needsRoot, startMeshInstance } from '../support/mesh-instance.ts'

const options = { skip: needsRoot, timeout: 60_000 }
let mesh: MeshInstance

before(async () => {
  if (!needsRoot) mesh = await startMeshInstance()
}, options)

after(async () => {
  await mesh?.[Symbol.asyncDispose]()
}, options)

test('proxy-status shows the node proxies with the control plane they are connected to', options, async () => {
  const { code, output } = await mesh.command('proxy-status')
  assert.equal(code, 0, output)
  const rows = output.trim().split('\n')
  assert.match(rows[0] ?? '', /^NAME\s+CLUSTER\s+ISTIOD/)
  assert.equal(rows.filter((row) => /^ztunnel-\w+\.istio-system\s+Kubernetes\s+istiod-/.test(row)).length, 2, output)
})

test('what cannot be found is said with what there is instead', options, async () => {
  const revision = await mesh.command('remote-clusters', '-r', 'canary')
  assert.equal(revision.code, 1)
  assert.match(revision.output, /^no control plane of revision canary runs in namespace istio-system: .*--revision\n$/)
  const namespace = await mesh.command('proxy-status', '-i', 'elsewhere')
  assert.match(namespace.output, /^no control plane runs in namespace elsewhere: give --istioNamespace\n$/)
  const several = await mesh.command('ztunnel-config', 'certificate')
  assert.equal(several.code, 1)
  assert.match(several.output, /^several node proxies run: .*ztunnel-\w+ \(--node node-1\)/)
  assert.equal((await mesh.command('ztunnel-config', 'certificate', '--node', 'node-1')).code, 0)
})

test('remote-clusters shows each cluster, and why one cannot be read', options, async () => {
  const runs = {
    'current-context': 'x',
    contexts: [{ name: 'x', context: { cluster: 'x', user: 'x' } }],
    clusters: [{ name: 'x', cluster: { server: 'https://127.0.0.1:1' } }],
    users: [{ name: 'x', user: { exec: { command: 'sh' } } }],
  }
  await mesh.client.create(resources.secrets, {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { namespace: 'istio-system', name: 'remote', labels: { 'istio/multiCluster': 'true' } },
    ...{ data: { c2: Buffer.from(JSON.stringify(runs)).toString('base64') } },
  } as KubeObject)
  let shown = await mesh.command('remote-clusters')
  while (!/c2\s.*closed/.test(shown.output)) shown = await mesh.command('remote-clusters')
  assert.match(shown.output, /^NAME\s+SECRET\s+STATUS\s+ISTIOD\s+REVISION\s+PROBLEM\nKubernetes\s+synced\s+istiod-/)
  assert.match(shown.output, /\nc2\s+istio-system\/remote\s+closed\s+istiod-\S+\s+default\s+.*exec is not allowed\n/)
  const listed = await mesh.command('remote-clusters', '-o', 'json')
  const clusters = JSON.parse(listed.output) as { id: string; syncStatus: string }[]
  assert.deepEqual(
    clusters.map(({ id, syncStatus }) => [id, syncStatus]),
    [
      ['Kubernetes', 'synced'],
      ['c2', 'closed'],
    ],
  )
})
