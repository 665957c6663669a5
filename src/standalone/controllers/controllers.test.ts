// The other controllers: daemon sets, stateful sets, jobs, budgets, endpoints, service accounts, and the scheduler.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { type KubeObject, type Resource, resources } from '../../api/index.ts'
import type { Informer } from '../../kube/index.ts'
import type { DaemonSet, DisruptionBudget, EndpointSlice, Job, Pod, Service, StatefulSet } from './objects.ts'
import { deployment, startTestCluster, template } from './testing.ts'

const cluster = await startTestCluster()
const { client, addNode, eventually } = cluster
after(() => cluster[Symbol.asyncDispose]())

test('every namespace gets a default service account and the certificate of the API server', async () => {
  await eventually(resources.serviceAccounts, (accounts) => accounts.get({ namespace: 'default', name: 'default' }))
  const map = await eventually(resources.configMaps, (maps) =>
    maps.get({ namespace: 'default', name: 'kube-root-ca.crt' }),
  )
  assert.match((map as { data?: Record<string, string> }).data?.['ca.crt'] ?? '', /BEGIN CERTIFICATE/)
})

test('the endpoints of a service follow its pods', async () => {
  const service: Service = {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'web', namespace: 'default' },
    spec: { selector: { app: 'web' }, ports: [{ name: 'http', port: 80, targetPort: 'http' }] },
  }
  await client.create(resources.deployments, deployment('web', 1))
  await client.create(resources.services, service)
  const slicesOf = (all: Informer<EndpointSlice>) =>
    all.list().filter((slice) => slice.metadata.labels?.['kubernetes.io/service-name'] === 'web')
  const slice = await eventually(resources.endpointSlices, (all: Informer<EndpointSlice>) =>
    slicesOf(all).find(({ endpoints }) => endpoints.length === 1),
  )
  assert.deepEqual(slice.ports, [{ name: 'http', port: 8080, protocol: 'TCP' }])
  assert.deepEqual(slice.endpoints[0]?.conditions, { ready: true, serving: true, terminating: false })
  const older: Resource = { group: '', version: 'v1', kind: 'Endpoints', plural: 'endpoints', namespaced: true }
  const [subset] = await eventually(
    older,
    (all: Informer<KubeObject & { subsets?: { addresses?: { ip: string }[]; ports?: object[] }[] }>) =>
      all.get({ namespace: 'default', name: 'web' })?.subsets,
  )
  assert.equal(subset?.addresses?.[0]?.ip, slice.endpoints[0]?.addresses[0])
  assert.deepEqual(subset?.ports, [{ name: 'http', port: 8080, protocol: 'TCP' }])
  await client.patch(
    resources.deployments,
    { namespace: 'default', name: 'web' },
    { kind: 'merge', body: { spec: { replicas: 0 } } },
  )
  await eventually(resources.endpointSlices, (all: Informer<EndpointSlice>) =>
    slicesOf(all).every(({ endpoints }) => endpoints.length === 0) ? true : undefined,
  )
})

test('a daemon set runs one pod on each node, also on one that comes later', async () => {
  const set: DaemonSet = {
    apiVersion: 'apps/v1',
    kind: 'DaemonSet',
    metadata: { name: 'agent', namespace: 'default' },
    spec: { selector: { matchLabels: { app: 'agent' } }, template: template('agent') },
  }
  await client.create(resources.daemonSets, set)
  const readyOn = (count: number) => (all: Informer<DaemonSet>) => {
    const found = all.get({ namespace: 'default', name: 'agent' })
    return found?.status?.numberReady === count && found.status.desiredNumberScheduled === count ? found : undefined
  }
  await eventually(resources.daemonSets, readyOn(2))
  await addNode('n3')
  await eventually(resources.daemonSets, readyOn(3))
  await client.patch(
    resources.daemonSets,
    { namespace: 'default', name: 'agent' },
    { kind: 'merge', body: { spec: { template: { metadata: { labels: { version: '2' } } } } } },
  )
  await eventually(resources.daemonSets, (all: Informer<DaemonSet>) => {
    const found = readyOn(3)(all)
    return found?.status?.updatedNumberScheduled === 3 && found.status.observedGeneration === 2 ? found : undefined
  })
})

test('a stateful set numbers its pods and replaces them from the last to the first', async () => {
  const set: StatefulSet = {
    apiVersion: 'apps/v1',
    kind: 'StatefulSet',
    metadata: { name: 'db', namespace: 'default' },
    spec: { serviceName: 'db', replicas: 3, selector: { matchLabels: { app: 'db' } }, template: template('db') },
  }
  await client.create(resources.statefulSets, set)
  const ready = (check: (set: StatefulSet) => boolean) => (all: Informer<StatefulSet>) => {
    const found = all.get({ namespace: 'default', name: 'db' })
    return found?.status?.readyReplicas === found?.spec?.replicas && found !== undefined && check(found)
      ? found
      : undefined
  }
  await eventually(
    resources.statefulSets,
    ready(() => true),
  )
  const pods = (await client.list<Pod>(resources.pods, { namespace: 'default', labelSelector: 'app=db' })).items
  assert.deepEqual(
    pods.map(({ metadata }) => metadata.name),
    ['db-0', 'db-1', 'db-2'],
  )
  assert.equal(pods[0]?.spec?.subdomain, 'db')
  await client.patch(
    resources.statefulSets,
    { namespace: 'default', name: 'db' },
    { kind: 'merge', body: { spec: { template: { metadata: { labels: { version: '2' } } } } } },
  )
  await eventually(
    resources.statefulSets,
    ready(
      ({ status }) =>
        status?.observedGeneration === 2 &&
        status.updatedReplicas === 3 &&
        status.currentRevision === status.updateRevision,
    ),
  )
})

function job(name: string, image: string, spec: object): Job {
  const pod = template(name, image)
  return {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: { name, namespace: 'default' },
    spec: { ...spec, template: { ...pod, spec: { ...pod.spec, restartPolicy: 'Never' } } },
  }
}

const ended = (name: string, type: string) => (all: Informer<Job>) => {
  const found = all.get({ namespace: 'default', name })
  return found?.status?.conditions?.some((condition) => condition.type === type && condition.status === 'True')
    ? found
    : undefined
}

test('a job runs until enough pods have succeeded, and gives up after too many failures', async () => {
  await client.create(resources.jobs, job('good', 'ends', { completions: 3, parallelism: 2 }))
  assert.equal((await eventually(resources.jobs, ended('good', 'Complete'))).status?.succeeded, 3)
  await client.create(resources.jobs, job('bad', 'fails', { backoffLimit: 0 }))
  const failed = await eventually(resources.jobs, ended('bad', 'Failed'))
  assert.equal(failed.status?.conditions?.find(({ type }) => type === 'Failed')?.reason, 'BackoffLimitExceeded')
})

test('a disruption budget allows evictions as long as enough pods are left', async () => {
  await client.create(resources.deployments, deployment('guarded', 3))
  await client.create(resources.podDisruptionBudgets, {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { name: 'guarded', namespace: 'default' },
    spec: { minAvailable: '60%', selector: { matchLabels: { app: 'guarded' } } },
  } as DisruptionBudget)
  const allows = (count: number) =>
    eventually(resources.podDisruptionBudgets, (all: Informer<DisruptionBudget>) => {
      const { status } = all.get({ namespace: 'default', name: 'guarded' }) ?? {}
      return status?.disruptionsAllowed === count && status.currentHealthy === 3 ? status : undefined
    })
  assert.equal((await allows(1)).desiredHealthy, 2)
  const { items } = await client.list<Pod>(resources.pods, { namespace: 'default', labelSelector: 'app=guarded' })
  const evict = async ({ metadata: { name, namespace = '' } }: Pod) => {
    const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name, namespace } }
    return client.createSubresource(resources.pods, { name, namespace }, 'eviction', eviction)
  }
  const two = await Promise.allSettled(items.slice(0, 2).map(evict))
  assert.equal(two.filter(({ status }) => status === 'fulfilled').length, 1)
  await allows(1)
})

test('a pod that fits nowhere says why', async () => {
  const pod: Pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'picky', namespace: 'default' },
    spec: { nodeSelector: { disk: 'fast' }, containers: [{ name: 'main', image: 'host' }] },
  }
  await client.create(resources.pods, pod)
  const waiting = await eventually(resources.pods, (all: Informer<Pod>) => {
    const found = all.get({ namespace: 'default', name: 'picky' })
    return found?.status?.conditions?.some(({ reason }) => reason === 'Unschedulable') ? found : undefined
  })
  assert.match(
    JSON.stringify(waiting.status?.conditions),
    /nodes are available: \d+ node\(s\) didn't match Pod's node affinity/,
  )
})
