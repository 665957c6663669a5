// The scale subresource: the replica count of any scalable kind in one common form.
import type { KindDefinition, KubeObject, ScaleSubresource } from '../../../api/index.ts'
import { type Core, findEntry, present } from '../core.ts'
import { badRequest, invalid, notFound } from '../errors.ts'
import { clone, isObject, type JsonObject, valueAt } from '../json.ts'
import { type PatchType, patched } from '../operations/patch.ts'
import type { WriteRequest } from '../operations/request.ts'
import { updateObject } from '../operations/update.ts'

export function readScale(
  core: Core,
  kind: KindDefinition,
  scale: ScaleSubresource,
  namespace: string,
  name: string,
): KubeObject {
  const entry = findEntry(core, kind, namespace, name)
  if (entry === undefined) throw notFound(kind, name)
  return scaleOf(scale, present(kind, entry))
}

/** Replaces (`patch` absent) or patches the scale; returns the new one. */
export async function writeScale(
  core: Core,
  request: WriteRequest,
  scale: ScaleSubresource,
  name: string,
  body: unknown,
  patch: PatchType | undefined,
): Promise<KubeObject> {
  const { subresource: _, ...main } = request
  const { object } = await updateObject(core, { ...main, fieldValidation: 'Ignore' }, name, {
    fields: 'track',
    next: (current) => {
      const wanted = patch === undefined ? body : patched(patch, scaleOf(scale, current), body, request)
      return withReplicas(scale, current, wanted)
    },
  })
  return scaleOf(scale, object)
}

function withReplicas(scale: ScaleSubresource, current: KubeObject, wanted: unknown): KubeObject {
  if (!isObject(wanted)) throw badRequest('the body of the request must be a Scale object')
  const replicas = valueAt(wanted, ['spec', 'replicas']) ?? 0
  if (typeof replicas !== 'number' || !Number.isInteger(replicas) || replicas < 0) {
    throw invalid({ group: 'autoscaling', kind: 'Scale' }, current.metadata.name, [
      {
        reason: 'FieldValueInvalid',
        field: 'spec.replicas',
        message: `Invalid value: ${JSON.stringify(replicas)}: must be a whole number that is greater than or equal to 0`,
      },
    ])
  }
  const next = clone(current)
  const version = valueAt(wanted, ['metadata', 'resourceVersion'])
  if (typeof version === 'string' && version !== '') next.metadata.resourceVersion = version
  setAt(next as unknown as JsonObject, pathOf(scale.specReplicasPath), replicas)
  return next
}

function scaleOf(scale: ScaleSubresource, object: KubeObject): KubeObject {
  const { name, namespace, uid, resourceVersion, creationTimestamp } = object.metadata
  const selector = scale.labelSelectorPath === undefined ? undefined : valueAt(object, pathOf(scale.labelSelectorPath))
  const number = (path: string) => Number(valueAt(object, pathOf(path)) ?? 0)
  return {
    kind: 'Scale',
    apiVersion: 'autoscaling/v1',
    metadata: JSON.parse(JSON.stringify({ name, namespace, uid, resourceVersion, creationTimestamp })),
    spec: { replicas: number(scale.specReplicasPath) },
    status: {
      replicas: number(scale.statusReplicasPath),
      ...(selector === undefined ? {} : { selector: selectorText(selector) }),
    },
  }
}

/** Scale paths are plain: `.spec.replicas`. */
function pathOf(path: string): string[] {
  return path.split('.').filter((step) => step !== '')
}

function setAt(target: JsonObject, path: readonly string[], value: unknown): void {
  const [step, ...rest] = path
  if (step === undefined) return
  if (rest.length === 0) {
    target[step] = value
    return
  }
  const below = target[step]
  const next: JsonObject = isObject(below) ? below : {}
  target[step] = next
  setAt(next, rest, value)
}

/** A LabelSelector object, a plain map (ReplicationController), or text (custom resources). */
function selectorText(selector: unknown): string {
  if (typeof selector === 'string') return selector
  if (!isObject(selector)) return ''
  const { matchLabels, matchExpressions } = selector
  if (matchLabels === undefined && matchExpressions === undefined) return pairs(selector).join(',')
  const expressions = (Array.isArray(matchExpressions) ? matchExpressions : []).map(
    ({ key, operator, values = [] }: { key: string; operator: string; values?: string[] }) => {
      if (operator === 'Exists') return key
      if (operator === 'DoesNotExist') return `!${key}`
      return `${key} ${operator === 'In' ? 'in' : 'notin'} (${values.join(',')})`
    },
  )
  return [...pairs(matchLabels), ...expressions].join(',')
}

function pairs(labels: unknown): string[] {
  return isObject(labels) ? Object.entries(labels).map(([key, value]) => `${key}=${value}`) : []
}
