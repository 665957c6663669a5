// Subresources of pods that change them: binding to a node, and eviction.
import type { KindDefinition, KubeObject } from '../../../api/index.ts'
import type { Core } from '../core.ts'
import { findEntry, present } from '../core.ts'
import { ApiError, badRequest, conflict, notFound } from '../errors.ts'
import { isObject, valueAt } from '../json.ts'
import { timestamp } from '../metadata.ts'
import { deleteObject, parseDeleteOptions } from '../operations/delete.ts'
import type { WriteRequest } from '../operations/request.ts'
import { updateObject } from '../operations/update.ts'
import { matchesLabels, type Requirement } from '../selectors.ts'

interface PodParts {
  readonly spec?: { readonly nodeName?: string }
  readonly status?: { readonly conditions?: readonly { readonly type: string }[]; readonly phase?: string }
}

/** Assigns the pod to the node that a Binding names. */
export async function bindPod(core: Core, request: WriteRequest, name: string, binding: unknown): Promise<void> {
  const node = valueAt(binding, ['target', 'name'])
  if (typeof node !== 'string' || node === '') throw badRequest('a Binding must name a node in target.name')
  const { subresource: _, ...main } = request
  await updateObject(core, main, name, {
    fields: 'track',
    next(current) {
      const { spec = {}, status = {} } = current as KubeObject & PodParts
      const uid = valueAt(binding, ['metadata', 'uid'])
      if (typeof uid === 'string' && uid !== '' && uid !== current.metadata.uid) {
        throw conflict(request.kind, name, `the UID in the precondition (${uid}) does not match`)
      }
      if (current.metadata.deletionTimestamp !== undefined) {
        throw conflict(request.kind, name, `pod ${name} is being deleted, cannot be assigned to a host`)
      }
      if (spec.nodeName !== undefined && spec.nodeName !== '') {
        throw conflict(request.kind, name, `pod ${name} is already assigned to node "${spec.nodeName}"`)
      }
      return { ...current, spec: { ...spec, nodeName: node }, status }
    },
  })
  await updateObject(core, { ...main, subresource: 'status' }, name, {
    fields: 'track',
    next(current) {
      const { status = {} } = current as KubeObject & PodParts
      const scheduled = {
        type: 'PodScheduled',
        status: 'True',
        lastProbeTime: null,
        lastTransitionTime: timestamp(core.now()),
      }
      const others = (status.conditions ?? []).filter((condition) => condition.type !== 'PodScheduled')
      return { ...current, status: { ...status, conditions: [...others, scheduled] } }
    },
  })
}

/** Deletes the pod unless a PodDisruptionBudget forbids it now (429). */
export async function evictPod(core: Core, request: WriteRequest, name: string, eviction: unknown): Promise<void> {
  const { subresource: _, ...main } = request
  const entry = findEntry(core, request.kind, request.namespace, name)
  if (entry === undefined) throw notFound(request.kind, name)
  const pod = present(request.kind, entry) as KubeObject & PodParts
  const phase = pod.status?.phase
  if (phase !== 'Succeeded' && phase !== 'Failed' && pod.metadata.deletionTimestamp === undefined) {
    refuseDisruption(core, request.kind, pod)
  }
  const options = parseDeleteOptions(valueAt(eviction, ['deleteOptions']), new URLSearchParams())
  const isDryRun = request.dryRun || options.dryRun
  const giveBack = isDryRun ? undefined : spendDisruption(core, pod)
  try {
    await deleteObject(core, { ...main, dryRun: isDryRun }, name, options)
  } catch (error) {
    giveBack?.()
    throw error
  }
}

type Budget = KubeObject<{ selector?: unknown }, { disruptionsAllowed?: number }>

const budgets = 'policy/poddisruptionbudgets'

function budgetsOf(core: Core, { metadata }: KubeObject): Budget[] {
  return core.store
    .list(budgets, metadata.namespace)
    .map((entry) => entry.object as Budget)
    .filter((budget) => selects(budget.spec?.selector, metadata.labels ?? {}))
}

/**
 * Until the controller has counted again, the next eviction is not to find the same disruption allowed. Returns what undoes that when the pod
 * stays, for budgets that nobody has counted since.
 */
function spendDisruption(core: Core, pod: KubeObject): () => void {
  const spent = budgetsOf(core, pod).flatMap((budget) => {
    const { disruptionsAllowed = 0 } = budget.status ?? {}
    if (disruptionsAllowed <= 0) return []
    const status = { ...budget.status, disruptionsAllowed: disruptionsAllowed - 1 }
    return [{ budget, entry: core.store.put(budgets, { ...budget, status }) }]
  })
  return () => {
    for (const { budget, entry } of spent) {
      if (core.store.get(budgets, entry.namespace, entry.name) === entry) core.store.put(budgets, budget)
    }
  }
}

function refuseDisruption(core: Core, kind: KindDefinition, pod: KubeObject): void {
  for (const budget of budgetsOf(core, pod)) {
    if ((budget.status?.disruptionsAllowed ?? 0) > 0) continue
    throw new ApiError(429, 'TooManyRequests', "Cannot evict pod as it would violate the pod's disruption budget.", {
      kind: kind.plural,
      name: pod.metadata.name,
      causes: [
        {
          reason: 'DisruptionBudget',
          message: `The disruption budget ${budget.metadata.name} allows no disruption now`,
        },
      ],
      retryAfterSeconds: 10,
    })
  }
}

function selects(selector: unknown, labels: Readonly<Record<string, string>>): boolean {
  if (!isObject(selector)) return false
  const requirements: Requirement[] = []
  for (const [key, value] of Object.entries(isObject(selector.matchLabels) ? selector.matchLabels : {})) {
    requirements.push({ kind: 'in', key, values: [String(value)] })
  }
  for (const expression of Array.isArray(selector.matchExpressions) ? selector.matchExpressions : []) {
    const { key, operator, values = [] } = expression as { key: string; operator: string; values?: string[] }
    if (operator === 'In' || operator === 'NotIn') {
      requirements.push({ kind: operator === 'In' ? 'in' : 'notin', key, values })
    } else requirements.push({ kind: operator === 'Exists' ? 'exists' : 'missing', key })
  }
  return matchesLabels(requirements, labels)
}
