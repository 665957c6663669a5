// Tells the owners of invalid objects: by a condition in the object's status, and by an Event.
import { createHash } from 'node:crypto'
import { type Condition, type KubeObject, type Resource, resources } from '../api/index.ts'
import { type ObjectProblems, type ProblemLog, problemKey, problemText } from '../config/index.ts'
import { type Informer, isKubeError, type KubeClient } from '../kube/index.ts'
import type { Scope } from '../observability/index.ts'
import { pendingWork, tellingAttempt } from './pending-work.ts'

const conditionType = 'Valid'
const ourReason = 'Invalid'
const mostMessage = 1_000

interface WithConditions {
  readonly conditions?: readonly Condition[]
}

export interface ProblemWriterOptions {
  readonly client: KubeClient
  readonly problems: ProblemLog
  /** The objects that may carry our condition, also from before this process led. */
  readonly objects: readonly CheckedObjects[]
  /** Whether an object is for this control plane: those of others tell what others think of them. */
  readonly owns: (object: KubeObject) => boolean
  readonly reporter: string
  /** How many objects are written at once. */
  readonly mostAtOnce: number
  readonly log: Scope
}

export interface CheckedObjects {
  readonly resource: Resource
  readonly informer: Pick<Informer<KubeObject>, 'subscribe'>
}

type Told = Pick<ObjectProblems, 'resource' | 'object'>

/** Works until the signal aborts. Objects from files have no status and are only logged. */
export async function writeProblems(options: ProblemWriterOptions, signal: AbortSignal): Promise<void> {
  const { client, problems, reporter, log } = options
  /** Objects that carry our condition. */
  const told = new Map<string, Told>()
  const work = pendingWork(
    reconcile,
    (object, error, attempt) => {
      const level = attempt === tellingAttempt ? 'error' : 'debug'
      log[level]('an invalid object could not be reported', { object, attempt, reason: String(error) })
    },
    { mostAtOnce: options.mostAtOnce },
  )

  async function reconcile(key: string): Promise<void> {
    const now = problems.get(key)
    const one = now ?? told.get(key)
    if (one === undefined || now?.where !== undefined) return
    try {
      if (hasOwnStatus(one.resource)) await writeCondition(one, now)
      if (now !== undefined) await writeEvent(now)
    } catch (error) {
      // It is gone.
      if (!isKubeError(error, 404)) throw error
    }
    if (now === undefined) told.delete(key)
    else told.set(key, now)
  }

  /** Those that carry our condition without a problem were mended while nobody told their owners. */
  function look(resource: Resource, object: KubeObject): void {
    if (!hasOwnStatus(resource) || !carriesOurs(object) || !options.owns(object)) return
    const key = problemKey(resource, object)
    if (problems.get(key) !== undefined) return
    told.set(key, { resource, object })
    work.add(key)
  }

  async function writeCondition({ resource, object }: Told, now: ObjectProblems | undefined): Promise<void> {
    const present = await client.get(resource, object.metadata)
    if (present === undefined) return
    const conditions = nextConditions(present, now)
    if (conditions === undefined) return
    const body = { metadata: { resourceVersion: present.metadata.resourceVersion }, status: { conditions } }
    await client.patch(resource, object.metadata, { kind: 'merge', body }, { subresource: 'status' })
  }

  async function writeEvent({ object, problems: found, served }: ObjectProblems): Promise<void> {
    const { namespace, name, uid = '', resourceVersion = '' } = object.metadata
    const text = messageOf(found)
    const time = new Date().toISOString().replace(/\.\d+Z$/, 'Z')
    const id = createHash('sha256')
      .update(`${object.kind} ${uid} ${resourceVersion} ${text}`)
      .digest('hex')
      .slice(0, 16)
    const event = {
      apiVersion: 'v1',
      kind: 'Event',
      // Those about objects of the whole cluster are in this namespace, by the rule of the API, but do not say that the objects are.
      metadata: { namespace: namespace ?? 'default', name: `${name.slice(0, 200)}.${id}` },
      involvedObject: {
        apiVersion: object.apiVersion,
        kind: object.kind,
        ...(namespace === undefined ? {} : { namespace }),
        name,
        uid,
        resourceVersion,
      },
      type: 'Warning',
      reason: 'InvalidConfiguration',
      message: `${text} (served: ${served})`,
      source: { component: 'istiod' },
      reportingComponent: 'istio.io/istiod',
      reportingInstance: reporter,
      firstTimestamp: time,
      lastTimestamp: time,
      count: 1,
    }
    try {
      await client.create(resources.events, event)
    } catch (error) {
      // Told before, by us or another replica.
      if (!isKubeError(error, 409)) throw error
    }
  }

  const ends = [
    problems.subscribe((key) => work.add(key)),
    ...options.objects.map(({ resource, informer }) =>
      informer.subscribe((changes) => {
        for (const { kind, object } of changes) if (kind !== 'deleted') look(resource, object)
      }),
    ),
  ]
  try {
    await work.run(signal)
  } finally {
    for (const end of ends) end()
  }
}

/** The status of other kinds belongs to others: there only an Event tells. */
function hasOwnStatus({ group }: Resource): boolean {
  return group.endsWith('.istio.io')
}

/** The list to write; undefined when what is there is right. Conditions of others stay. */
export function nextConditions(
  object: KubeObject,
  problems: ObjectProblems | undefined,
  now: () => string = () => new Date().toISOString().replace(/\.\d+Z$/, 'Z'),
): readonly Condition[] | undefined {
  const present = (object.status as WithConditions | undefined)?.conditions ?? []
  const others = present.filter((condition) => !isOurs(condition))
  const old = present.find(isOurs)
  if (problems === undefined) return old === undefined ? undefined : others
  const { generation } = problems.object.metadata
  const message = messageOf(problems.problems)
  if (old?.status === 'False' && old.message === message && old.observedGeneration === generation) return undefined
  const condition: Condition = {
    type: conditionType,
    status: 'False',
    reason: ourReason,
    message,
    lastTransitionTime: (old?.status === 'False' ? old.lastTransitionTime : undefined) ?? now(),
    ...(generation === undefined ? {} : { observedGeneration: generation }),
  }
  return [...others, condition]
}

const isOurs = ({ type, reason }: Condition): boolean => type === conditionType && reason === ourReason

function carriesOurs({ status }: KubeObject): boolean {
  return ((status as WithConditions | undefined)?.conditions ?? []).some(isOurs)
}

function messageOf(problems: ObjectProblems['problems']): string {
  const text = problems.map(problemText).join('; ')
  return text.length <= mostMessage ? text : `${text.slice(0, mostMessage)}…`
}
