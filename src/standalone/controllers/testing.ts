// For tests: the controllers with their own credentials against a real embedded API; nodes are played by a watch that says that
// each pod runs and is ready.
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startApi } from '../../../test/support/embedded-api.ts'
import { untilObjects } from '../../../test/support/until-object.ts'
import { type KubeObject, type Resource, resources } from '../../api/index.ts'
import { createKubeClient, type Informer, type KubeClient } from '../../kube/index.ts'
import { type Scope, silentLogging } from '../../observability/index.ts'
import { writeCredentials } from '../credentials.ts'
import { startControllers } from './index.ts'
import type { Deployment, Node, Pod } from './objects.ts'

export interface TestCluster extends AsyncDisposable {
  /** The administrator. */
  readonly client: KubeClient
  readonly directory: string
  addNode(name: string): Promise<void>
  /** Resolves with what `find` finds first among the objects of the kind. */
  eventually<T extends KubeObject, R>(
    resource: Resource,
    find: (informer: Informer<T>) => R | undefined,
    what?: string,
  ): Promise<R>
}

/** With the nodes n1 and n2. Disposing fails when the API server refused anything to the controllers. */
export async function startTestCluster(): Promise<TestCluster> {
  const directory = mkdtempSync(join(tmpdir(), 'lateen-controllers-'))
  const api = await startApi(directory)
  const client = await createKubeClient({ kubeconfig: api.kubeconfig })
  const own = async (kind: 'controllers' | 'scheduler'): Promise<KubeClient> => {
    const path = join(directory, kind)
    await writeCredentials({ client, administrator: api.kubeconfig, part: { kind }, path, host: '127.0.0.1' })
    return createKubeClient({ kubeconfig: path })
  }
  const parts = { client: await own('controllers'), scheduler: await own('scheduler') }
  const refusals: string[] = []
  const rootCertificates = await readFile(join(directory, 'pki/ca.crt'), 'utf8')
  const controllers = await startControllers({ ...parts, log: noting(refusals), rootCertificates })
  for (const name of ['n1', 'n2']) await addNode(client, name)
  const nodes = playNodes(client)
  return {
    client,
    directory,
    addNode: (name) => addNode(client, name),
    eventually: (resource, find, what = 'the condition') => eventually(client, resource, find, what),
    async [Symbol.asyncDispose]() {
      await nodes[Symbol.asyncDispose]()
      await controllers[Symbol.asyncDispose]()
      for (const one of [parts.client, parts.scheduler, client]) await one.close()
      await api[Symbol.asyncDispose]()
      rmSync(directory, { recursive: true })
      assert.deepEqual(refusals, [], 'their rights are what their work takes')
    },
  }
}

/** A log of which only refused requests are kept. */
function noting(refusals: string[]): Scope {
  const note = (message: string, fields?: object): void => {
    const text = `${message} ${JSON.stringify(fields)}`
    if (/forbidden|cannot/.test(text)) refusals.push(text)
  }
  return { ...silentLogging().scope('test'), warn: note, info: note, debug: note, error: note }
}

async function addNode(client: KubeClient, name: string): Promise<void> {
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
function playNodes(client: KubeClient): AsyncDisposable {
  const pods = client.informer<Pod>(resources.pods)
  const work = new Set<Promise<void>>()
  let next = 1
  const unsubscribe = pods.subscribe((changes) => {
    for (const change of changes) {
      if (change.kind === 'deleted') continue
      const step = play(client, change.object, () => `10.1.0.${next++}`).catch(() => undefined)
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

async function play(client: KubeClient, pod: Pod, newAddress: () => string): Promise<void> {
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

const eventually = <T extends KubeObject, R>(
  client: KubeClient,
  resource: Resource,
  find: (informer: Informer<T>) => R | undefined,
  what: string,
): Promise<R> =>
  untilObjects<T, R>(client, resource, find, {
    namespace: 'default',
    withinMs: 20_000,
    complaint: (seen) =>
      `${what} did not come true: ${JSON.stringify(seen.list().map(({ metadata, status }) => [metadata.name, status]))}`,
  })

export const template = (app: string, image = 'host', labels: Record<string, string> = {}) => ({
  metadata: { labels: { app, ...labels } },
  spec: { containers: [{ name: 'main', image, ports: [{ name: 'http', containerPort: 8080 }] }] },
})

export function deployment(name: string, replicas: number, labels: Record<string, string> = {}): Deployment {
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name, namespace: 'default' },
    spec: { replicas, selector: { matchLabels: { app: name } }, template: template(name, 'host', labels) },
  }
}

export const isComplete = (name: string, replicas: number) => (informer: Informer<Deployment>) => {
  const found = informer.get({ namespace: 'default', name })
  const { status, metadata } = found ?? {}
  const isDone =
    status?.observedGeneration === metadata?.generation &&
    status?.updatedReplicas === replicas &&
    status?.replicas === replicas &&
    status?.availableReplicas === replicas
  return isDone ? found : undefined
}
