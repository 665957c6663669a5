// Policies and membership in the mesh of `lateen up`: they take effect while pods talk, and go without a trace.
import assert from 'node:assert/strict'
import test, { after, before } from 'node:test'
import { type KubeObject, resources } from '../../src/api/index.ts'
import { type MeshInstance, needsRoot, startMeshInstance, type TestPod } from '../support/mesh-instance.ts'
import {
  document,
  inMesh,
  namespaceManifest,
  podManifest,
  podProgram,
  podSpec,
  serviceManifest,
} from '../support/mesh-manifests.ts'
import { talk } from '../support/mesh-pod.ts'

const options = { skip: needsRoot, timeout: 60_000 }
const effectMs = 1000

const manifests = [
  namespaceManifest('default', inMesh),
  namespaceManifest('plain'),
  podManifest('server', 'node-1', { spec: { serviceAccountName: 'default' } }),
  podManifest('client', 'node-2'),
  podManifest('outside', 'node-2', { namespace: 'plain' }),
  serviceManifest('server', 'server'),
].join('')

let mesh: MeshInstance
let serverIP: string

before(async () => {
  if (needsRoot) return
  mesh = await startMeshInstance()
  await mesh.apply(manifests)
  const [server] = await Promise.all(['server', 'client', 'plain/outside'].map((name) => mesh.pod(name)))
  serverIP = server?.status?.podIP ?? ''
}, options)

after(async () => {
  await mesh?.[Symbol.asyncDispose]()
}, options)

async function passes(from: string, port: 'echo' | 'banner' = 'echo'): Promise<boolean> {
  const { code, output } = await mesh.exec(from, ...podProgram, port, serverIP)
  return code === 0 && output.trim() !== ''
}

/** Resolves with how long it took until calls were as wanted, and then checks that they stay so. */
async function becomes(wanted: boolean, from: string, port: 'echo' | 'banner' = 'echo'): Promise<void> {
  const begin = Date.now()
  let last = Date.now()
  while ((await passes(from, port)) !== wanted) {
    last = Date.now()
    assert.ok(last - begin < 10_000, `${from} → ${port} does not become ${wanted}`)
  }
  assert.ok(last - begin < effectMs + 500, `${from} → ${port} became ${wanted} after ${last - begin} ms`)
  assert.equal(await passes(from, port), wanted)
}

function policy(kind: string, name: string, namespace: string, spec: object, annotations?: object): string {
  const metadata = { name, namespace, ...(annotations && { annotations }) }
  return document({ apiVersion: 'security.istio.io/v1', kind, metadata, spec })
}

async function remove(kind: string, name: string, namespace: string): Promise<void> {
  const resource = await mesh.client.resolve('security.istio.io/v1', kind)
  assert.ok(resource !== undefined)
  await mesh.client.delete(resource, { name, namespace })
}

const ofServer = { selector: { matchLabels: { app: 'server' } } }
const strict = { mtls: { mode: 'STRICT' } }

for (const [level, namespace, spec] of [
  ['mesh', 'istio-system', strict],
  ['namespace', 'default', strict],
  ['workload', 'default', { ...ofServer, ...strict }],
] as const) {
  test(`STRICT for the ${level} refuses plaintext, its deletion accepts it again`, options, async () => {
    assert.ok(await passes('plain/outside'))
    await mesh.apply(policy('PeerAuthentication', 'default', namespace, spec))
    await becomes(false, 'plain/outside')
    assert.ok(await passes('client'))
    await remove('PeerAuthentication', 'default', namespace)
    await becomes(true, 'plain/outside')
  })
}

test('STRICT but for one port, and PERMISSIVE but for one port', options, async () => {
  await mesh.apply(
    policy('PeerAuthentication', 'ports', 'default', {
      ...ofServer,
      ...strict,
      portLevelMtls: { [talk.banner]: { mode: 'PERMISSIVE' } },
    }),
  )
  await becomes(false, 'plain/outside')
  assert.ok(await passes('plain/outside', 'banner'))
  await mesh.apply(
    policy('PeerAuthentication', 'ports', 'default', {
      ...ofServer,
      mtls: { mode: 'PERMISSIVE' },
      portLevelMtls: { [talk.banner]: { mode: 'STRICT' } },
    }),
  )
  await becomes(true, 'plain/outside')
  await becomes(false, 'plain/outside', 'banner')
  await remove('PeerAuthentication', 'ports', 'default')
  await becomes(true, 'plain/outside', 'banner')
})

const denyAll = { action: 'DENY', rules: [{}] }
const allowNobody = {}

for (const [what, namespace, spec] of [
  ['DENY of a workload', 'default', { ...ofServer, ...denyAll }],
  ['DENY of a port', 'default', { action: 'DENY', rules: [{ to: [{ operation: { ports: [String(talk.echo)] } }] }] }],
  [
    'DENY of the client’s identity',
    'default',
    { action: 'DENY', rules: [{ from: [{ source: { principals: ['cluster.local/ns/default/sa/default'] } }] }] },
  ],
  ['ALLOW of nobody', 'default', allowNobody],
  ['ALLOW of another namespace', 'default', { rules: [{ from: [{ source: { namespaces: ['plain'] } }] }] }],
  ['DENY in the root namespace', 'istio-system', denyAll],
] as const) {
  test(`${what} ends new and established connections within a second, its deletion restores`, options, async () => {
    await mesh.apply(podManifest('keeps', 'node-2', { words: ['keep', 'server'] }))
    const ended = logLine('keeps', /ended/)
    await logLine('keeps', /open/)
    const begin = Date.now()
    await mesh.apply(policy('AuthorizationPolicy', 'test', namespace, spec))
    const line = await ended
    assert.match(line, /ended: (?!.*after pauses of at most \d{5})/)
    assert.ok(Date.now() - begin < effectMs + 1000, `the connection ended after ${Date.now() - begin} ms`)
    assert.equal(await passes('client'), false)
    await remove('AuthorizationPolicy', 'test', namespace)
    await becomes(true, 'client')
    await mesh.client.delete(resources.pods, { namespace: 'default', name: 'keeps' }, { gracePeriodSeconds: 0 })
    await mesh.podGone('keeps')
  })
}

test('a policy on trial denies nothing', options, async () => {
  await mesh.apply(policy('AuthorizationPolicy', 'trial', 'default', denyAll, { 'istio.io/dry-run': 'true' }))
  await mesh.apply(policy('AuthorizationPolicy', 'marker', 'plain', denyAll))
  assert.ok(await passes('client'))
  assert.ok(await passes('client'))
  await remove('AuthorizationPolicy', 'trial', 'default')
  await remove('AuthorizationPolicy', 'marker', 'plain')
})

/** Resolves with the first line of the pod's log that matches. */
async function logLine(name: string, pattern: RegExp): Promise<string> {
  await mesh.pod(name, ({ status }) => status?.phase === 'Running')
  const response = await mesh.client.request(`/api/v1/namespaces/default/pods/${name}/log?follow=true`)
  let text = ''
  for await (const chunk of response.body ?? []) {
    text += Buffer.from(chunk).toString('utf8')
    const line = text.split('\n').find((one) => pattern.test(one))
    if (line !== undefined) return line
  }
  assert.fail(`${name} never said ${pattern}: ${text}`)
}

async function label(resource: typeof resources.pods, key: { name: string; namespace?: string }, value: string | null) {
  const body = { metadata: { labels: { 'istio.io/dataplane-mode': value } } }
  await mesh.client.patch<KubeObject>(resource, key, { kind: 'merge', body })
}

const redirected = ({ metadata }: TestPod) => metadata.annotations?.['ambient.istio.io/redirection'] === 'enabled'

test(
  'pods join and leave the mesh by the label of their namespace and by their own, and talk all the while',
  options,
  async () => {
    const strictServer = policy('PeerAuthentication', 'default', 'default', strict)
    await mesh.apply(strictServer)
    await becomes(false, 'plain/outside')
    for (const [resource, key] of [
      [resources.namespaces, { name: 'plain' }],
      [resources.pods, { namespace: 'plain', name: 'outside' }],
    ] as const) {
      await label(resource, key, 'ambient')
      await mesh.pod('plain/outside', redirected)
      await becomes(true, 'plain/outside')
      await label(resource, key, null)
      await mesh.pod('plain/outside', (pod) => !redirected(pod))
      await becomes(false, 'plain/outside')
    }
    await remove('PeerAuthentication', 'default', 'default')
    await becomes(true, 'plain/outside')
    await label(resources.pods, { namespace: 'default', name: 'server' }, 'none')
    await mesh.pod('server', (pod) => !redirected(pod))
    await becomes(true, 'client')
    await becomes(true, 'plain/outside')
    await label(resources.pods, { namespace: 'default', name: 'server' }, null)
    await mesh.pod('server', redirected)
    await becomes(true, 'client')
  },
)

test('a rolling update and scaling lose no request', options, async () => {
  const deployment = (version: string, replicas: number) => {
    const spec = podSpec() as { containers: Record<string, unknown>[] }
    const containers = spec.containers.map((container) => ({
      ...container,
      lifecycle: { preStop: { sleep: { seconds: 1 } } },
    }))
    return document({
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'roll' },
      spec: {
        replicas,
        selector: { matchLabels: { app: 'roll' } },
        strategy: { rollingUpdate: { maxUnavailable: 0, maxSurge: 1 } },
        template: { metadata: { labels: { app: 'roll', version } }, spec: { ...spec, containers } },
      },
    })
  }
  const done = async (version: string, count: number) => {
    await using informer = mesh.client.informer<TestPod>(resources.pods, { labelSelector: 'app=roll' })
    const { promise, resolve } = Promise.withResolvers<void>()
    informer.subscribe(() => {
      const pods = informer.list()
      const good = pods.filter(
        ({ metadata, status }) =>
          metadata.labels?.version === version && status?.containerStatuses?.every(({ ready }) => ready),
      )
      if (pods.length === count && good.length === count) resolve()
    })
    await informer.synced
    if (count === 0 && informer.list().length === 0) resolve()
    await promise
  }
  await mesh.apply(serviceManifest('roll', 'roll') + deployment('one', 2))
  await done('one', 2)
  await mesh.apply(podManifest('asks', 'node-2', { words: ['pulse', 'roll', '3000'] }))
  await logLine('asks', /well/)
  await mesh.apply(deployment('two', 2))
  await done('two', 2)
  await mesh.apply(deployment('two', 5))
  await done('two', 5)
  await mesh.apply(deployment('two', 1))
  await done('two', 1)
  const response = await mesh.client.request('/api/v1/namespaces/default/pods/asks/log')
  const lines = (await response.text()).trim().split('\n')
  assert.deepEqual(
    lines.filter((line) => !line.endsWith('well')),
    [],
  )
})
