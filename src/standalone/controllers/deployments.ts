// Deployment: one ReplicaSet for each template; moves pods from the old ones to the new one.
import { createHash } from 'node:crypto'
import { resources } from '../../api/index.ts'
import type { Cluster } from './cluster.ts'
import { deleteExactly, own, ownersOf, type Source, source, startController, writeStatus } from './controller.ts'
import { deploymentStatus, progressDueMs } from './deployment-status.ts'
import { recordEvent } from './events.ts'
import {
  controllerOf,
  controllerReference,
  type Deployment,
  isActive,
  isSame,
  isTerminating,
  keyOf,
  type PodTemplate,
  type ReplicaSet,
  scaled,
} from './objects.ts'

const hashLabel = 'pod-template-hash'
const revisionAnnotation = 'deployment.kubernetes.io/revision'

export function startDeployments(cluster: Cluster): AsyncDisposable {
  return startController(cluster, {
    name: 'deployments',
    sources: [own(cluster.deployments), ownersOf(cluster.replicaSets, 'Deployment'), endsOfPods(cluster)],
    work: (key) => reconcile(cluster, key),
  })
}

/** Pods that are gone: with strategy Recreate the new ones wait for that, and the ReplicaSet has not counted them for long. */
function endsOfPods(cluster: Cluster): Source {
  return source(
    cluster.pods,
    (pod) => {
      const owner = controllerOf(pod)
      const set = cluster.replicaSets.get({ namespace: pod.metadata.namespace ?? '', name: owner?.name ?? '' })
      const deployment = set?.metadata.uid === owner?.uid && set !== undefined ? controllerOf(set) : undefined
      return deployment?.kind === 'Deployment' ? [`${pod.metadata.namespace}/${deployment.name}`] : []
    },
    ({ kind }) => kind === 'deleted',
  )
}

async function reconcile(cluster: Cluster, key: string): Promise<number | undefined> {
  const deployment = cluster.deployments.get(keyOf(key))
  if (deployment?.metadata.uid === undefined || deployment.spec === undefined || isTerminating(deployment))
    return undefined
  const sets = cluster.ownedReplicaSets.of(deployment.metadata.uid).filter((set) => !isTerminating(set))
  const existing = sets.find((set) => isSame(withoutHash(set.spec?.template), deployment.spec?.template))
  const old = sets.filter((set) => set !== existing)
  const current = await ensureNewest(cluster, deployment, existing, old)
  if (current !== undefined) {
    await writeRevision(cluster, deployment, current)
    if (deployment.spec.paused !== true) await roll(cluster, deployment, current, old)
  }
  if (deployment.spec.paused === true && current !== undefined && old.every((set) => replicasOf(set) === 0)) {
    await setReplicas(cluster, deployment, current, deployment.spec.replicas ?? 1)
  }
  await removeOld(cluster, deployment, old)
  const latest = cluster.deployments.get(keyOf(key)) ?? deployment
  const status = deploymentStatus(deployment, current, old)
  await writeStatus(cluster, resources.deployments, latest, status)
  return progressDueMs(deployment, status)
}

const replicasOf = (set: ReplicaSet): number => set.spec?.replicas ?? 1
const availableOf = (set: ReplicaSet): number => set.status?.availableReplicas ?? 0
const revisionOf = (set: ReplicaSet): number => Number(set.metadata.annotations?.[revisionAnnotation] ?? 0)
const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0)

function withoutHash(template: PodTemplate | undefined): PodTemplate | undefined {
  if (template?.metadata?.labels === undefined) return template
  const { [hashLabel]: _, ...labels } = template.metadata.labels
  return { ...template, metadata: { ...template.metadata, labels } }
}

/** The ReplicaSet of the template; undefined when it does not exist and the deployment is paused. */
async function ensureNewest(
  cluster: Cluster,
  deployment: Deployment,
  existing: ReplicaSet | undefined,
  old: readonly ReplicaSet[],
): Promise<ReplicaSet | undefined> {
  const highest = Math.max(0, ...old.map(revisionOf))
  if (existing !== undefined) {
    if (revisionOf(existing) > highest) return existing
    const annotations = { ...existing.metadata.annotations, [revisionAnnotation]: String(highest + 1) }
    return replace(cluster, { ...existing, metadata: { ...existing.metadata, annotations } })
  }
  if (deployment.spec?.paused === true) return undefined
  const set = newReplicaSet(deployment, highest + 1, old)
  const created = await cluster.client.create(resources.replicaSets, set)
  cluster.ownedReplicaSets.created(created)
  await tellScaled(cluster, deployment, created, 0, replicasOf(created))
  return created
}

function newReplicaSet(deployment: Deployment, revision: number, old: readonly ReplicaSet[]): ReplicaSet {
  const { metadata, spec } = deployment
  const { template, selector, replicas = 1, minReadySeconds } = spec ?? { template: {}, selector: {} }
  const hash = templateHash(
    template,
    old.map(({ metadata: { name } }) => name),
    metadata.name,
  )
  const labels = { ...template.metadata?.labels, [hashLabel]: hash }
  const { 'kubectl.kubernetes.io/last-applied-configuration': _, ...annotations } = metadata.annotations ?? {}
  return {
    apiVersion: 'apps/v1',
    kind: 'ReplicaSet',
    metadata: {
      name: `${metadata.name}-${hash}`,
      ...(metadata.namespace === undefined ? {} : { namespace: metadata.namespace }),
      labels,
      annotations: {
        ...annotations,
        [revisionAnnotation]: String(revision),
        ...scaleAnnotations(deployment),
      },
      ownerReferences: [controllerReference(deployment)],
    },
    spec: {
      replicas: initialReplicas(deployment, old, replicas),
      ...(minReadySeconds === undefined ? {} : { minReadySeconds }),
      selector: { ...selector, matchLabels: { ...selector.matchLabels, [hashLabel]: hash } },
      template: { ...template, metadata: { ...template.metadata, labels } },
    },
  }
}

function scaleAnnotations(deployment: Deployment): Record<string, string> {
  const { replicas = 1 } = deployment.spec ?? {}
  return {
    'deployment.kubernetes.io/desired-replicas': String(replicas),
    'deployment.kubernetes.io/max-replicas': String(replicas + limitsOf(deployment).surge),
  }
}

/** A short text that differs from the names already taken. */
function templateHash(template: PodTemplate, taken: readonly string[], name: string): string {
  for (let round = 0; ; round += 1) {
    const digest = createHash('sha256')
      .update(`${JSON.stringify(template)}${round}`)
      .digest()
    const hash = [...digest.subarray(0, 10)].map((byte) => 'bcdfghjklmnpqrstvwxz2456789'[byte % 27]).join('')
    if (!taken.includes(`${name}-${hash}`)) return hash
  }
}

function initialReplicas(deployment: Deployment, old: readonly ReplicaSet[], replicas: number): number {
  if (deployment.spec?.strategy?.type === 'Recreate') return 0
  const { surge } = limitsOf(deployment)
  return Math.max(0, Math.min(replicas, replicas + surge - sum(old.map(replicasOf))))
}

/** How many pods may be too many and how many may be missing during a rollout. Never both zero. */
function limitsOf(deployment: Deployment): { surge: number; unavailable: number } {
  const { replicas = 1, strategy } = deployment.spec ?? {}
  if (strategy?.type === 'Recreate') return { surge: 0, unavailable: replicas }
  const surge = scaled(strategy?.rollingUpdate?.maxSurge ?? '25%', replicas, true)
  const unavailable = scaled(strategy?.rollingUpdate?.maxUnavailable ?? '25%', replicas, false)
  return { surge, unavailable: surge === 0 && unavailable === 0 ? 1 : Math.min(unavailable, replicas) }
}

async function replace(cluster: Cluster, set: ReplicaSet): Promise<ReplicaSet> {
  return cluster.client.replace(resources.replicaSets, set)
}

async function setReplicas(cluster: Cluster, deployment: Deployment, set: ReplicaSet, replicas: number): Promise<void> {
  const annotations = { ...set.metadata.annotations, ...scaleAnnotations(deployment) }
  if (replicasOf(set) === replicas && isSame(annotations, set.metadata.annotations)) return
  if (set.spec === undefined) return
  await replace(cluster, { ...set, metadata: { ...set.metadata, annotations }, spec: { ...set.spec, replicas } })
  await tellScaled(cluster, deployment, set, replicasOf(set), replicas)
}

async function tellScaled(
  cluster: Cluster,
  deployment: Deployment,
  set: ReplicaSet,
  from: number,
  to: number,
): Promise<void> {
  if (from === to) return
  const message = `Scaled ${to > from ? 'up' : 'down'} replica set ${set.metadata.name} from ${from} to ${to}`
  const component = 'deployment-controller'
  await recordEvent(cluster, deployment, { type: 'Normal', reason: 'ScalingReplicaSet', message, component })
}

async function writeRevision(cluster: Cluster, deployment: Deployment, current: ReplicaSet): Promise<void> {
  const revision = current.metadata.annotations?.[revisionAnnotation]
  if (revision === undefined || deployment.metadata.annotations?.[revisionAnnotation] === revision) return
  await cluster.client.patch(
    resources.deployments,
    keyOf(`${deployment.metadata.namespace}/${deployment.metadata.name}`),
    {
      kind: 'merge',
      body: { metadata: { annotations: { [revisionAnnotation]: revision } } },
    },
  )
}

async function roll(
  cluster: Cluster,
  deployment: Deployment,
  current: ReplicaSet,
  old: readonly ReplicaSet[],
): Promise<void> {
  const { replicas = 1, strategy } = deployment.spec ?? {}
  if (strategy?.type === 'Recreate') {
    await Promise.all(old.map((set) => setReplicas(cluster, deployment, set, 0)))
    const podsLeft = old.some((set) =>
      cluster.ownedPods.of(set.metadata.uid ?? '').some((pod) => isActive(pod) || isTerminating(pod)),
    )
    if (!podsLeft) await setReplicas(cluster, deployment, current, replicas)
    return
  }
  const { surge, unavailable } = limitsOf(deployment)
  const total = replicasOf(current) + sum(old.map(replicasOf))
  const room = Math.max(0, replicas + surge - total)
  const wanted = replicasOf(current) > replicas ? replicas : Math.min(replicas, replicasOf(current) + room)
  await setReplicas(cluster, deployment, current, wanted)
  await shrinkOld(cluster, deployment, current, old, replicas - unavailable)
}

/** Takes pods away from old ReplicaSets: first those that are not available, then as many as the new ones replace. */
async function shrinkOld(
  cluster: Cluster,
  deployment: Deployment,
  current: ReplicaSet,
  old: readonly ReplicaSet[],
  minAvailable: number,
): Promise<void> {
  const notYet = replicasOf(current) - availableOf(current)
  let removable = sum([current, ...old].map(replicasOf)) - minAvailable - notYet
  let spare = sum([current, ...old].map(availableOf)) - minAvailable
  for (const set of old.toSorted((a, b) => revisionOf(a) - revisionOf(b))) {
    const before = replicasOf(set)
    if (before === 0 || removable <= 0) continue
    const broken = Math.min(Math.max(0, before - availableOf(set)), removable)
    const good = Math.max(0, Math.min(before - broken, removable - broken, spare))
    removable -= broken + good
    spare -= good
    if (broken + good > 0) await setReplicas(cluster, deployment, set, before - broken - good)
  }
}

async function removeOld(cluster: Cluster, deployment: Deployment, old: readonly ReplicaSet[]): Promise<void> {
  const { revisionHistoryLimit = 10 } = deployment.spec ?? {}
  const empty = old.filter((set) => replicasOf(set) === 0 && (set.status?.replicas ?? 0) === 0)
  const surplus = empty
    .toSorted((a, b) => revisionOf(a) - revisionOf(b))
    .slice(0, Math.max(0, empty.length - revisionHistoryLimit))
  for (const set of surplus) {
    await deleteExactly(cluster, resources.replicaSets, set)
    cluster.ownedReplicaSets.deleted(set)
  }
}
