import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { configMap, type Json, startTestApi, type TestApi } from '../testing.ts'

let api: TestApi
before(async () => {
  api = await startTestApi()
})
after(async () => {
  await api[Symbol.asyncDispose]()
})

test('finalizers hold an object until the last is taken away', async () => {
  const ns = await api.namespace()
  await api.ok('POST', `${ns}/configmaps`, configMap('a', { finalizers: ['example.com/x'] }))
  const marked = await api.ok('DELETE', `${ns}/configmaps/a`)
  assert.ok(marked.metadata.deletionTimestamp)
  const more = { metadata: { finalizers: ['example.com/x', 'example.com/y'] } }
  assert.equal(
    (await api.send('PATCH', `${ns}/configmaps/a`, { body: more, type: 'application/merge-patch+json' })).code,
    422,
  )
  await api.ok('PATCH', `${ns}/configmaps/a`, { metadata: { finalizers: null } }, 'application/merge-patch+json')
  assert.ok(await api.isGone(`${ns}/configmaps/a`))
})

test('preconditions protect another object of the same name', async () => {
  const ns = await api.namespace()
  await api.ok('POST', `${ns}/configmaps`, configMap('a'))
  const body = { preconditions: { uid: 'other' } }
  assert.equal((await api.send('DELETE', `${ns}/configmaps/a`, { body })).code, 409)
})

const pod = (name: string, spec: object = {}) => ({
  metadata: { name },
  spec: { containers: [{ name: 'c', image: 'host' }], ...spec },
})

test('a pod on a node is ended gracefully, and gone when the node says so', async () => {
  const ns = await api.namespace()
  await api.ok('POST', `${ns}/pods`, pod('p', { terminationGracePeriodSeconds: 7 }))
  await api.ok('POST', `${ns}/pods/p/binding`, { target: { kind: 'Node', name: 'n' } })
  const bound = await api.ok('GET', `${ns}/pods/p`)
  assert.equal(bound.spec.nodeName, 'n')
  assert.equal(bound.status.conditions[0].type, 'PodScheduled')
  assert.equal((await api.send('POST', `${ns}/pods/p/binding`, { body: { target: { name: 'm' } } })).code, 409)
  const marked = await api.ok('DELETE', `${ns}/pods/p`)
  assert.equal(marked.metadata.deletionGracePeriodSeconds, 7)
  const shorter = await api.ok('DELETE', `${ns}/pods/p?gracePeriodSeconds=3`)
  assert.equal(shorter.metadata.deletionGracePeriodSeconds, 3)
  const longer = await api.ok('DELETE', `${ns}/pods/p?gracePeriodSeconds=60`)
  assert.equal(longer.metadata.deletionGracePeriodSeconds, 3)
  await api.ok('DELETE', `${ns}/pods/p?gracePeriodSeconds=0`)
  assert.ok(await api.isGone(`${ns}/pods/p`))
})

test('a pod without a node goes at once', async () => {
  const ns = await api.namespace()
  await api.ok('POST', `${ns}/pods`, pod('p'))
  await api.ok('DELETE', `${ns}/pods/p`)
  assert.ok(await api.isGone(`${ns}/pods/p`))
})

test('an eviction deletes, unless a disruption budget forbids it', async () => {
  const ns = await api.namespace()
  const policies = ns.replace('/api/v1', '/apis/policy/v1')
  await api.ok('POST', `${policies}/poddisruptionbudgets`, {
    metadata: { name: 'b' },
    spec: { minAvailable: 1, selector: { matchLabels: { a: 'b' } } },
  })
  await api.ok('POST', `${ns}/pods`, { ...pod('held'), metadata: { name: 'held', labels: { a: 'b' } } })
  await api.ok('POST', `${ns}/pods`, pod('free'))
  const eviction = (name: string) => ({ apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name } })
  assert.equal((await api.send('POST', `${ns}/pods/held/eviction`, { body: eviction('held') })).code, 429)
  await api.ok('POST', `${ns}/pods/free/eviction`, eviction('free'))
  assert.deepEqual(await api.names(`${ns}/pods`), ['held'])
})

async function owned(ns: string, owner: Json, name: string, blocks = false): Promise<void> {
  const { uid } = owner.metadata
  const reference = {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    name: owner.metadata.name,
    uid,
    blockOwnerDeletion: blocks,
  }
  await api.ok('POST', `${ns}/configmaps`, configMap(name, { ownerReferences: [reference] }))
}

test('in the background, dependents follow their owner', async () => {
  const ns = await api.namespace()
  const owner = await api.ok('POST', `${ns}/configmaps`, configMap('owner'))
  await owned(ns, owner, 'child')
  await owned(ns, await api.ok('GET', `${ns}/configmaps/child`), 'grandchild')
  await api.ok('DELETE', `${ns}/configmaps/owner`)
  await api.eventually(`${ns}/configmaps`, async () => (await api.names(`${ns}/configmaps`)).length === 0)
})

test('in the foreground, the owner waits for its dependents', async () => {
  const ns = await api.namespace()
  const owner = await api.ok('POST', `${ns}/configmaps`, configMap('owner'))
  await owned(ns, owner, 'child', true)
  await api.ok(
    'PATCH',
    `${ns}/configmaps/child`,
    { metadata: { finalizers: ['example.com/x'] } },
    'application/merge-patch+json',
  )
  await api.ok('DELETE', `${ns}/configmaps/owner?propagationPolicy=Foreground`)
  await api.eventually(`${ns}/configmaps`, async () => {
    const child = await api.ok('GET', `${ns}/configmaps/child`)
    return child.metadata.deletionTimestamp !== undefined
  })
  assert.deepEqual(await api.names(`${ns}/configmaps`), ['child', 'owner'])
  await api.ok('PATCH', `${ns}/configmaps/child`, { metadata: { finalizers: null } }, 'application/merge-patch+json')
  await api.eventually(`${ns}/configmaps`, async () => (await api.names(`${ns}/configmaps`)).length === 0)
})

test('orphaned dependents stay without their owner', async () => {
  const ns = await api.namespace()
  const owner = await api.ok('POST', `${ns}/configmaps`, configMap('owner'))
  await owned(ns, owner, 'child')
  await api.ok('DELETE', `${ns}/configmaps/owner`, { propagationPolicy: 'Orphan' })
  await api.eventually(`${ns}/configmaps`, () => api.isGone(`${ns}/configmaps/owner`))
  assert.equal((await api.ok('GET', `${ns}/configmaps/child`)).metadata.ownerReferences, undefined)
})

test('a dependent with another living owner stays, and loses the reference', async () => {
  const ns = await api.namespace()
  const one = await api.ok('POST', `${ns}/configmaps`, configMap('one'))
  const two = await api.ok('POST', `${ns}/configmaps`, configMap('two'))
  const reference = (owner: Json) => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    name: owner.metadata.name,
    uid: owner.metadata.uid,
  })
  await api.ok('POST', `${ns}/configmaps`, configMap('child', { ownerReferences: [reference(one), reference(two)] }))
  await api.ok('DELETE', `${ns}/configmaps/one`)
  await api.eventually(`${ns}/configmaps`, async () => {
    const child = await api.ok('GET', `${ns}/configmaps/child`)
    return child.metadata.ownerReferences.length === 1
  })
})

test('a namespace goes with all that is in it, and takes nothing new meanwhile', async () => {
  const ns = await api.namespace()
  await api.ok('POST', `${ns}/configmaps`, configMap('held', { finalizers: ['example.com/x'] }))
  await api.ok('POST', `${ns}/configmaps`, configMap('free'))
  const marked = await api.ok('DELETE', ns)
  assert.equal(marked.status.phase, 'Terminating')
  const refused = await api.send('POST', `${ns}/configmaps`, { body: configMap('late') })
  assert.equal(refused.code, 403)
  await api.eventually(`${ns}/configmaps`, async () => (await api.names(`${ns}/configmaps`)).join() === 'held')
  assert.equal((await api.send('GET', ns)).code, 200)
  await api.ok('PATCH', `${ns}/configmaps/held`, { metadata: { finalizers: null } }, 'application/merge-patch+json')
  await api.eventually('/api/v1/namespaces', () => api.isGone(ns))
})
