// Tells the owners of invalid objects: by a condition in the object's status, and by an Event.
import { createHash } from 'node:crypto'
import { type Condition, type KubeObject, type Resource, resources } from '../api/index.ts'
import { type ObjectProblems, type ProblemLog, problemText } from '../config/index.ts'
import { isKubeError, type KubeClient } from '../kube/index.ts'
import type { Scope } from '../observability/index.ts'
import { pendingWork } from './pending-work.ts'

const conditionType = 'Valid'
const mostMessage = 1_000

interface WithConditions {
  readonly conditions?: readonly Condition[]
}

/** Works until the signal aborts. Objects from files have no status and are only logged. */
export async function writeProblems(
  client: KubeClient,
  problems: ProblemLog,
  reporter: string,
  log: Scope,
  signal: AbortSignal,
): Promise<void> {
  const told = new Map<string, ObjectProblems>()
  const work = pendingWork(reconcile, (object, error, attempt) => {
    const level = attempt === 5 ? 'error' : 'debug'
    log[level]('an invalid object could not be reported', { object, attempt, reason: String(error) })
  })

  async function reconcile(key: string): Promise<void> {
    const now = problems.get(key)
    const before = told.get(key)
    const one = now ?? before
    if (one === undefined || one.where !== undefined) return
    if (now === undefined) told.delete(key)
    try {
      if (hasOwnStatus(one.resource)) await writeCondition(one, now)
      if (now !== undefined) await writeEvent(now)
    } catch (error) {
      // It is gone, or we are told to keep out.
      if (!isKubeError(error, 404) && !isKubeError(error, 403)) throw error
    }
    if (now !== undefined) told.set(key, now)
  }

  async function writeCondition({ resource, object }: ObjectProblems, now: ObjectProblems | undefined): Promise<void> {
    const present = await client.get(resource, object.metadata)
    if (present === undefined) return
    const conditions = nextConditions(present, now)
    if (conditions === undefined) return
    const body = { metadata: { resourceVersion: present.metadata.resourceVersion }, status: { conditions } }
    await client.patch(resource, object.metadata, { kind: 'merge', body }, { subresource: 'status' })
  }

  async function writeEvent({ object, problems: found, served }: ObjectProblems): Promise<void> {
    const { namespace = 'default', name, uid = '', resourceVersion = '' } = object.metadata
    const text = messageOf(found)
    const time = new Date().toISOString().replace(/\.\d+Z$/, 'Z')
    const id = createHash('sha256')
      .update(`${object.kind} ${uid} ${resourceVersion} ${text}`)
      .digest('hex')
      .slice(0, 16)
    const event = {
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { namespace, name: `${name.slice(0, 200)}.${id}` },
      involvedObject: { apiVersion: object.apiVersion, kind: object.kind, namespace, name, uid, resourceVersion },
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

  const end = problems.subscribe((key) => work.add(key))
  try {
    await work.run(signal)
  } finally {
    end()
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
  const others = present.filter(({ type }) => type !== conditionType)
  const old = present.find(({ type }) => type === conditionType)
  if (problems === undefined) return old === undefined ? undefined : others
  const { generation } = problems.object.metadata
  const message = messageOf(problems.problems)
  if (old?.status === 'False' && old.message === message && old.observedGeneration === generation) return undefined
  const condition: Condition = {
    type: conditionType,
    status: 'False',
    reason: 'Invalid',
    message,
    lastTransitionTime: (old?.status === 'False' ? old.lastTransitionTime : undefined) ?? now(),
    ...(generation === undefined ? {} : { observedGeneration: generation }),
  }
  return [...others, condition]
}

function messageOf(problems: ObjectProblems['problems']): string {
  const text = problems.map(problemText).join('; ')
  return text.length <= mostMessage ? text : `${text.slice(0, mostMessage)}…`
}
