// The controllers against a real embedded API; nodes are played by a watch that says that each pod runs and is ready.
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { type KubeObject, type Resource, resources } from '../../api/index.ts'
import { type EmbeddedApi, startEmbeddedApi } from '../../kube/apiserver/index.ts'
import { createKubeClient, type Informer, type KubeClient } from '../../kube/index.ts'
import { type Scope, silentLogging } from '../../observability/index.ts'
import { writeCredentials } from '../credentials.ts'
import { startControllers } from './index.ts'
import type {
  DaemonSet,
  Deployment,
  DisruptionBudget,
  EndpointSlice,
  Job,
  Node,
  Pod,
  ReplicaSet,
  Service,
  StatefulSet,
} from './objects.ts'

let api: EmbeddedApi
let client: KubeClient
const closing: AsyncDisposable[] = []
const directory = mkdtempSync(join(tmpdir(), 'lateen-controllers-'))

/** What the API server refused to the controllers. */
const refusals: string[] = []
const silent = silentLogging().scope('test')
const note = (message: string, fields?: object): void => {
  const text = `${message} ${JSON.stringify(fields)}`
  if (/forbidden|cannot/.test(text)) refusals.push(text)
}
const log: Scope = { ...silent, warn: note, info: note, debug: note, error: note }

before(async () => {
  api = await startEmbeddedApi({
    stateDir: directory,
    listen: [{ host: '127.0.0.1', port: 0 }],
    serviceCidr: '10.96.0.0/16',
    onError: (error) => assert.fail(String(error)),
  })
  client = await createKubeClient({ kubeconfig: api.kubeconfig })
  const rootCertificates = await readFile(join(directory, 'pki/ca.crt'), 'utf8')
  const [controllers, scheduler] = [await clientOf('controllers'), await clientOf('scheduler')]
  closing.push(await startControllers({ client: controllers, scheduler, log, rootCertificates }))
  await addNode('n1')
  await addNode('n2')
  closing.push(playNodes())
})

after(async () => {
  for (const one of closing.toReversed()) await one[Symbol.asyncDispose]()
  assert.deepEqual(refusals, [], 'their rights are what their work takes')
  await client.close()
  await api[Symbol.asyncDispose]()
  rmSync(directory, { recursive: true })
})

/** A client with the credentials that this part has in an instance. */
async function clientOf(kind: 'controllers' | 'scheduler'): Promise<KubeClient> {
  const path = join(directory, kind)
  await writeCredentials({ client, administrator: api.kubeconfig, part: { kind }, path, host: '127.0.0.1' })
  const own = await createKubeClient({ kubeconfig: path })
  closing.push({ [Symbol.asyncDispose]: () => own.close() })
  return own
}

async function addNode(name: string): Promise<void> {
  const node: Node = { apiVersion: 'v1', kind: 'Node', metadata: { name, labels: { 'kubernetes.io/hostname': name } } }
  const created = await client.create(resources.nodes, node)
  const ready = { type: 'Ready', status: 'True', reason: 'KubeletReady', message: '' }
  await client.replace(resources.nodes, { ...created, status: { conditions: [ready] } }, { subresource: 'status' })
  const now = new Date().toISOString()
  await client.create(resources.leases, {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name, namespace: 'kube-node-lease' },
    spec: { holderIdentity: name, leaseDurationSeconds: 40, renewTime: now.replace('Z', '000Z') },
  } as KubeObject)
}

/** Pods labelled `never-ready` stay pending; those of image `ends` succeed, of image `fails` fail; deleted ones end at once. */
function playNodes(): AsyncDisposable {
  const pods = client.informer<Pod>(resources.pods)
  const work = new Set<Promise<void>>()
  let next = 1
  const unsubscribe = pods.subscribe((changes) => {
    for (const change of changes) {
      if (change.kind === 'deleted') continue
      const step = play(change.object, () => `10.1.0.${next++}`).catch(() => undefined)
      work.add(step)
      void step.finally(() => work.delete(step))
    }
  })
  return {
    async [Symbol.asyncDispose]() {
      unsubscribe()
      await Promise.all(work)
      await pods[Symbol.asyncDispose]()
    },
  }
}

async function play(pod: Pod, newAddress: () => string): Promise<void> {
  const { metadata, spec, status } = pod
  const { namespace = '', name } = metadata
  if (metadata.deletionTimestamp !== undefined) {
    await client.delete(resources.pods, { namespace, name }, { gracePeriodSeconds: 0 })
    return
  }
  if ((spec?.nodeName ?? '') === '' || status?.phase !== 'Pending') return
  if (metadata.labels?.['never-ready'] !== undefined) return
  const image = spec?.containers[0]?.image
  const phase = image === 'ends' ? 'Succeeded' : image === 'fails' ? 'Failed' : 'Running'
  const podIP = newAddress()
  const conditions = [
    {
      type: 'Ready',
      status: phase === 'Running' ? 'True' : 'False',
      lastTransitionTime: new Date().toISOString().replace(/\.\d+Z$/, 'Z'),
    },
  ]
  await client.replace(
    resources.pods,
    { ...pod, status: { ...status, phase, podIP, podIPs: [{ ip: podIP }], conditions } },
    { subresource: 'status' },
  )
}

/** Resolves with what `find` finds first among the objects of the kind. */
async function eventually<T extends KubeObject, R>(
  resource: Resource,
  find: (informer: Informer<T>) => R | undefined,
  what = 'the condition',
): Promise<R> {
  const informer = client.informer<T>(resource, { namespace: 'default' })
  const { promise, resolve, reject } = Promise.withResolvers<R>()
  const show = (): string => JSON.stringify(informer.list().map(({ metadata, status }) => [metadata.name, status]))
  const timer = setTimeout(() => reject(new Error(`${what} did not come true: ${show()}`)), 20_000)
  const look = (): void => {
    const found = find(informer)
    if (found !== undefined) resolve(found)
  }
  const unsubscribe = informer.subscribe(look)
  void informer.synced.then(look, reject)
  try {
    return await promise
  } finally {
    clearTimeout(timer)
    unsubscribe()
    await informer[Symbol.asyncDispose]()
  }
}

const template = (app: string, image = 'host', labels: Record<string, string> = {}) => ({
  metadata: { labels: { app, ...labels } },
  spec: { containers: [{ name: 'main', image, ports: [{ name: 'http', containerPort: 8080 }] }] },
})

function deployment(name: string, replicas: number, labels: Record<string, string> = {}): Deployment {
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name, namespace: 'default' },
    spec: { replicas, selector: { matchLabels: { app: name } }, template: template(name, 'host', labels) },
  }
}

const isComplete = (name: string, replicas: number) => (informer: Informer<Deployment>) => {
  const found = informer.get({ namespace: 'default', name })
  const { status, metadata } = found ?? {}
  const isDone =
    status?.observedGeneration === metadata?.generation &&
    status?.updatedReplicas === replicas &&
    status?.replicas === replicas &&
    status?.availableReplicas === replicas
  return isDone ? found : undefined
}

test('every namespace gets a default service account and the certificate of the API server', async () => {
  await eventually(resources.serviceAccounts, (accounts) => accounts.get({ namespace: 'default', name: 'default' }))
  const map = await eventually(resources.configMaps, (maps) =>
    maps.get({ namespace: 'default', name: 'kube-root-ca.crt' }),
  )
  assert.match((map as { data?: Record<string, string> }).data?.['ca.crt'] ?? '', /BEGIN CERTIFICATE/)
})

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

test('the endpoints of a service follow its pods', async () => {
  const service: Service = {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'web', namespace: 'default' },
    spec: { selector: { app: 'web' }, ports: [{ name: 'http', port: 80, targetPort: 'http' }] },
  }
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
