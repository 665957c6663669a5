// Deployments: rollouts, scaling, and what they say of themselves.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { resources } from '../../api/index.ts'
import type { Informer } from '../../kube/index.ts'
import type { Deployment, Pod, ReplicaSet } from './objects.ts'
import { deployment, isComplete, startTestCluster, template } from './testing.ts'

const cluster = await startTestCluster()
const { client, eventually } = cluster
after(() => cluster[Symbol.asyncDispose]())

test('a deployment starts its pods, spread over the nodes, and is scaled up and down', async () => {
  await client.create(resources.deployments, deployment('web', 4))
  const done = await eventually(resources.deployments, isComplete('web', 4))
  assert.equal(done.metadata.annotations?.['deployment.kubernetes.io/revision'], '1')
  const pods = (await client.list<Pod>(resources.pods, { namespace: 'default', labelSelector: 'app=web' })).items
  assert.deepEqual(pods.map((pod) => pod.spec?.nodeName).toSorted(), ['n1', 'n1', 'n2', 'n2'])
  for (const replicas of [6, 1]) {
    await client.patch(
      resources.deployments,
      { namespace: 'default', name: 'web' },
      { kind: 'merge', body: { spec: { replicas } } },
    )
    await eventually(resources.deployments, isComplete('web', replicas))
  }
})

test('a changed template is rolled out without going below what must be available; the old one can come back', async () => {
  await client.create(resources.deployments, deployment('roll', 4))
  await eventually(resources.deployments, isComplete('roll', 4))
  const key = { namespace: 'default', name: 'roll' }
  let fewest = 4
  const watch = client.informer<Deployment>(resources.deployments, { namespace: 'default' })
  const stop = watch.subscribe((changes) => {
    for (const { object } of changes) {
      if (object.metadata.name === 'roll') fewest = Math.min(fewest, object.status?.availableReplicas ?? 0)
    }
  })
  const before = await client.get<Deployment>(resources.deployments, key)
  await client.patch(resources.deployments, key, {
    kind: 'merge',
    body: { spec: { template: template('roll', 'host', { version: '2' }) } },
  })
  const second = await eventually(resources.deployments, (all: Informer<Deployment>) => {
    const found = isComplete('roll', 4)(all)
    return found?.metadata.annotations?.['deployment.kubernetes.io/revision'] === '2' ? found : undefined
  })
  assert.equal(second.status?.conditions?.find(({ type }) => type === 'Progressing')?.reason, 'NewReplicaSetAvailable')
  await client.patch(resources.deployments, key, {
    kind: 'json',
    body: [{ op: 'replace', path: '/spec/template', value: before?.spec?.template }],
  })
  await eventually(resources.deployments, (all: Informer<Deployment>) => {
    const found = isComplete('roll', 4)(all)
    return found?.metadata.annotations?.['deployment.kubernetes.io/revision'] === '3' ? found : undefined
  })
  const sets = (
    await client.list<ReplicaSet>(resources.replicaSets, { namespace: 'default', labelSelector: 'app=roll' })
  ).items
  assert.equal(sets.length, 2)
  stop()
  await watch[Symbol.asyncDispose]()
  assert.ok(fewest >= 3, `only ${fewest} were available`)
})

test('a deployment that is to be recreated starts its new pods when the last old one is gone, however long that takes', async () => {
  const wanted = deployment('recreate', 1)
  const held = template('recreate')
  await client.create(resources.deployments, {
    ...wanted,
    spec: {
      selector: { matchLabels: { app: 'recreate' } },
      strategy: { type: 'Recreate' },
      template: { ...held, metadata: { ...held.metadata, finalizers: ['test.example/held'] } },
    },
  })
  await eventually(resources.deployments, isComplete('recreate', 1))
  const body = { spec: { template: { metadata: { labels: { version: 'two' } } } } }
  await client.patch(resources.deployments, { namespace: 'default', name: 'recreate' }, { kind: 'merge', body })
  const isOfApp = ({ metadata }: Pod) => metadata.labels?.app === 'recreate'
  const old = await eventually(resources.pods, (all: Informer<Pod>) =>
    all.list().find((pod) => isOfApp(pod) && pod.metadata.deletionTimestamp !== undefined),
  )
  await eventually(resources.deployments, (all: Informer<Deployment>) => {
    const status = all.get({ namespace: 'default', name: 'recreate' })?.status
    return status?.observedGeneration === 2 && (status.replicas ?? 0) === 0 ? true : undefined
  })
  // When another one has come up, nothing is on its way any more that could make this one due by chance.
  await client.create(resources.deployments, deployment('meanwhile', 1))
  await eventually(resources.deployments, isComplete('meanwhile', 1))
  const key = { namespace: 'default', name: old.metadata.name }
  await client.patch(resources.pods, key, { kind: 'merge', body: { metadata: { finalizers: null } } })
  await eventually(resources.deployments, isComplete('recreate', 1))
})

test('a rollout that cannot finish keeps the old pods and says so after its deadline', async () => {
  const wanted = deployment('stuck', 2)
  await client.create(resources.deployments, {
    ...wanted,
    spec: {
      ...wanted.spec,
      progressDeadlineSeconds: 1,
      template: template('stuck'),
      selector: { matchLabels: { app: 'stuck' } },
    },
  })
  await eventually(resources.deployments, isComplete('stuck', 2))
  await client.patch(
    resources.deployments,
    { namespace: 'default', name: 'stuck' },
    { kind: 'merge', body: { spec: { template: { metadata: { labels: { 'never-ready': 'yes' } } } } } },
  )
  const stuck = await eventually(resources.deployments, (all: Informer<Deployment>) => {
    const found = all.get({ namespace: 'default', name: 'stuck' })
    return found?.status?.conditions?.some(({ reason }) => reason === 'ProgressDeadlineExceeded') ? found : undefined
  })
  assert.equal(stuck.status?.availableReplicas, 2)
})
