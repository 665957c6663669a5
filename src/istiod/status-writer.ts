// Writes the conditions that tell the owners of objects how the mesh took them.
import { type Condition, type KubeObject, type Resource, resources } from '../api/index.ts'
import type { Collection } from '../collections/index.ts'
import { type ObjectConditions, ownedConditionTypes } from '../discovery/ambient/index.ts'
import { type Informer, isKubeError, type KubeClient } from '../kube/index.ts'
import type { Scope } from '../observability/index.ts'
import type { Cluster } from './cluster.ts'
import { pendingWork, tellingAttempt } from './pending-work.ts'

type Kind = ObjectConditions['kind']

interface WithConditions {
  readonly conditions?: readonly Condition[]
}

const resourceOf: Readonly<Record<Kind, Resource>> = {
  Service: resources.services,
  ServiceEntry: resources.serviceEntries,
  WorkloadEntry: resources.workloadEntries,
  AuthorizationPolicy: resources.authorizationPolicies,
}

/** Works until the signal aborts, at so many objects at once: examines every object once, then each whose wanted conditions change. */
export async function writeConditions(
  client: KubeClient,
  cluster: Pick<Cluster, 'informers'>,
  conditions: Collection<ObjectConditions>,
  mostAtOnce: number,
  log: Scope,
  signal: AbortSignal,
): Promise<void> {
  const informers: Readonly<Record<Kind, Informer<KubeObject>>> = {
    Service: cluster.informers.services,
    ServiceEntry: cluster.informers.serviceEntries,
    WorkloadEntry: cluster.informers.workloadEntries,
    AuthorizationPolicy: cluster.informers.authorizationPolicies,
  }
  const told = new Set<Kind>()
  const work = pendingWork(
    reconcile,
    (object, error, attempt) => {
      const isForbidden = isKubeError(error, 403)
      if (isForbidden && attempt === tellingAttempt) forbidden(object, error)
      const level = attempt === tellingAttempt && !isForbidden ? 'error' : 'debug'
      log[level]('conditions could not be written', { object, attempt, reason: textOf(error) })
    },
    { mostAtOnce },
  )

  async function reconcile(key: string): Promise<void> {
    const [kind, namespace = '', name = ''] = key.split('/')
    if (!isKind(kind)) return
    const object = informers[kind].get({ namespace, name })
    if (object === undefined) return
    const present = (object.status as WithConditions | undefined)?.conditions ?? []
    const next = nextConditions(kind, present, conditions.get(key)?.conditions ?? [])
    if (next === undefined) return
    // Conditions of Istio's kinds are one list to the API server, which an apply would replace with those of others in it. The version makes
    // the write fail when somebody else wrote conditions meanwhile: the new object is looked at then.
    const body = { metadata: { resourceVersion: object.metadata.resourceVersion }, status: { conditions: next } }
    try {
      const options = { subresource: 'status', fieldManager: managerOf(kind, next) }
      await client.patch(resourceOf[kind], { namespace, name }, { kind: 'merge', body }, options)
    } catch (error) {
      if (!isKubeError(error, 404)) throw error
    }
  }

  function forbidden(key: string, error: Error): void {
    const [kind] = key.split('/')
    if (!isKind(kind) || told.has(kind)) return
    told.add(kind)
    log.warn('conditions may not be written: grant patch on the status', { kind, reason: error.message })
  }

  const ends = [
    conditions.subscribe((changes) => {
      for (const { key } of changes) work.add(key)
    }),
    ...Object.entries(informers).map(([kind, informer]) =>
      informer.subscribe((changes) => {
        for (const { object } of changes) work.add(`${kind}/${object.metadata.namespace ?? ''}/${object.metadata.name}`)
      }),
    ),
  ]
  try {
    await work.run(signal)
  } finally {
    for (const end of ends) end()
  }
}

/** Who writes, as the API server notes it beside the fields. */
function managerOf(kind: Kind, written: readonly Condition[]): string {
  switch (kind) {
    case 'Service':
    case 'ServiceEntry':
      return 'istio-ambient-service'
    case 'WorkloadEntry':
      return 'istio-ambient-workloadentry'
    case 'AuthorizationPolicy': {
      const isOfZtunnel = written.some(({ type }) => type === 'ZtunnelAccepted')
      return isOfZtunnel ? 'istio-ambient-ztunnel-policy' : 'istio-ambient-waypoint-policy'
    }
  }
}

/** The list to write, undefined when what is there is right. Conditions of others stay; times move only with the status. */
export function nextConditions(
  kind: Kind,
  present: readonly Condition[],
  wanted: readonly Condition[],
  now: () => string = () => new Date().toISOString().replace(/\.\d+Z$/, 'Z'),
): readonly Condition[] | undefined {
  const owned = new Set<string>(ownedConditionTypes[kind])
  const others = present.filter(({ type }) => !owned.has(type))
  const ours = wanted.map((condition) => {
    const old = present.find(({ type }) => type === condition.type)
    const lastTransitionTime = old?.status === condition.status ? old.lastTransitionTime : undefined
    return { ...condition, lastTransitionTime: lastTransitionTime ?? now() }
  })
  const presentOurs = present.filter(({ type }) => owned.has(type))
  const isSame =
    presentOurs.length === ours.length && ours.every((condition) => presentOurs.some((old) => isEqual(old, condition)))
  return isSame ? undefined : [...others, ...ours]
}

function isEqual(a: Condition, b: Condition): boolean {
  return (
    a.type === b.type &&
    a.status === b.status &&
    (a.reason ?? '') === (b.reason ?? '') &&
    (a.message ?? '') === (b.message ?? '') &&
    (a.observedGeneration ?? 0) === (b.observedGeneration ?? 0)
  )
}

function isKind(text: string | undefined): text is Kind {
  return text !== undefined && Object.hasOwn(resourceOf, text)
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
