// PUT and the end of every PATCH: a new state for a stored object.
import { apiVersionOf, type KindDefinition, type KubeObject } from '../../../api/index.ts'
import { sameManagedFields, trackUpdate } from '../apply/managed-fields.ts'
import { type Core, findEntry, present, toStored } from '../core.ts'
import { ApiError, badRequest, conflict, invalid, modified, notFound } from '../errors.ts'
import { clone, jsonEqual } from '../json.ts'
import { hasGeneration, storageOf } from '../kinds.ts'
import { mergeSubresource, prepareForUpdate } from '../strategy.ts'
import { acceptObject, admit, refuseInvalid, type WriteRequest } from './request.ts'

const tries = 12

export interface UpdateResult {
  readonly object: KubeObject
  /** The update took the last finalizer away, or a deletion was due: the object is no more. */
  readonly removed: boolean
}

export interface Transformation {
  /** Computes the wanted object from the current one (an own copy). Called again when another write came between. */
  readonly next: (current: KubeObject) => KubeObject | Promise<KubeObject>
  /** `manual`: `next` has set metadata.managedFields itself (server-side apply). */
  readonly fields: 'track' | 'manual'
  /** A PUT of a custom resource must name the version that it replaces. */
  readonly mustNameVersion?: boolean
}

export async function updateObject(
  core: Core,
  request: WriteRequest,
  name: string,
  { next, fields, mustNameVersion = false }: Transformation,
): Promise<UpdateResult> {
  const { kind, namespace } = request
  for (let attempt = 1; attempt <= tries; attempt += 1) {
    const entry = findEntry(core, kind, namespace, name)
    if (entry === undefined) throw notFound(kind, name)
    const current = clone(present(kind, entry))
    const wanted = acceptObject(request, await next(clone(current)))
    refuseOtherObject(kind, current, wanted, mustNameVersion)
    const merged = mergeSubresource(kind, request.subresource, current, wanted)
    keepServerMetadata(current, merged)
    kind.applyDefaults?.(merged)
    prepareForUpdate(kind, merged, current, request.subresource)
    // Before admission: what plugins change is not the writer's.
    if (fields === 'track') {
      trackUpdate(kind, current, merged, {
        manager: request.fieldManager,
        apiVersion: apiVersionOf(kind),
        now: core.now(),
        ...(request.subresource === undefined ? {} : { subresource: request.subresource }),
      })
    }
    const admitted = await admit(core, request, 'UPDATE', merged, current, (candidate) => {
      keepServerMetadata(current, candidate)
      refuseInvalid(kind, candidate, current)
    })
    if (findEntry(core, kind, namespace, name) !== entry) continue
    return commit(core, request, current, admitted)
  }
  throw conflict(kind, name, 'the object changed too often while it was being updated; please try again')
}

function commit(core: Core, request: WriteRequest, current: KubeObject, admitted: KubeObject): UpdateResult {
  const { kind, namespace } = request
  if (hasGeneration(kind) && specDiffers(current, admitted)) {
    admitted.metadata.generation = (current.metadata.generation ?? 0) + 1
  }
  core.addresses.assign(kind, admitted, current)
  const { name } = admitted.metadata
  if (isFinished(kind, admitted)) {
    if (!request.dryRun)
      core.store.remove(storageOf(kind), kind.namespaced ? namespace : '', name, toStored(kind, admitted))
    return { object: admitted, removed: true }
  }
  if (isUnchanged(current, admitted)) return { object: current, removed: false }
  if (request.dryRun) return { object: admitted, removed: false }
  const entry = core.store.put(storageOf(kind), toStored(kind, admitted))
  admitted.metadata.resourceVersion = String(entry.revision)
  return { object: admitted, removed: false }
}

function refuseOtherObject(
  kind: KindDefinition,
  current: KubeObject,
  wanted: KubeObject,
  mustNameVersion: boolean,
): void {
  const { metadata } = wanted
  const { name } = current.metadata
  if (metadata.name === '') metadata.name = name
  if (metadata.name !== name) {
    throw badRequest(`the name of the object (${metadata.name}) does not match the name on the URL (${name})`)
  }
  if (metadata.uid !== undefined && metadata.uid !== '' && metadata.uid !== current.metadata.uid) {
    throw conflict(
      kind,
      name,
      `Precondition failed: UID in precondition: ${metadata.uid}, UID in object meta: ${current.metadata.uid}`,
    )
  }
  const version = metadata.resourceVersion ?? ''
  if (version === '' || version === '0') {
    if (!mustNameVersion) return
    throw invalid(kind, name, [
      {
        reason: 'FieldValueInvalid',
        field: 'metadata.resourceVersion',
        message: 'Invalid value: 0x0: must be specified for an update',
      },
    ])
  }
  if (!/^\d+$/.test(version)) {
    throw new ApiError(400, 'BadRequest', `metadata.resourceVersion: Invalid value: "${version}": must be a number`)
  }
  if (version !== current.metadata.resourceVersion) throw modified(kind, name)
}

function keepServerMetadata(current: KubeObject, next: KubeObject): void {
  const {
    uid,
    creationTimestamp,
    deletionTimestamp,
    deletionGracePeriodSeconds,
    generation,
    resourceVersion,
    name,
    namespace,
  } = current.metadata
  Object.assign(next.metadata, { name, uid, creationTimestamp, resourceVersion })
  for (const [key, value] of Object.entries({ namespace, deletionTimestamp, deletionGracePeriodSeconds, generation })) {
    if (value === undefined) Reflect.deleteProperty(next.metadata, key)
    else Object.assign(next.metadata, { [key]: value })
  }
  Reflect.deleteProperty(next.metadata, 'selfLink')
}

function specDiffers(a: KubeObject, b: KubeObject): boolean {
  const { metadata: _a, status: _sa, ...restA } = a
  const { metadata: _b, status: _sb, ...restB } = b
  return !jsonEqual(restA, restB)
}

/** Nothing holds a deleted object any more. */
export function isFinished(kind: KindDefinition, object: KubeObject): boolean {
  const { deletionTimestamp, finalizers, deletionGracePeriodSeconds } = object.metadata
  if (deletionTimestamp === undefined || (finalizers?.length ?? 0) > 0) return false
  if ((deletionGracePeriodSeconds ?? 0) > 0) return false
  return !isNamespaceWithContent(kind, object)
}

export function isNamespaceWithContent(kind: KindDefinition, object: KubeObject): boolean {
  if (kind.group !== '' || kind.kind !== 'Namespace') return false
  const spec = object.spec as { finalizers?: string[] } | undefined
  return (spec?.finalizers?.length ?? 0) > 0
}

function isUnchanged(current: KubeObject, next: KubeObject): boolean {
  const bare = (object: KubeObject) => ({ ...object, metadata: { ...object.metadata, managedFields: undefined } })
  return (
    jsonEqual(bare(current), bare(next)) &&
    sameManagedFields(current.metadata.managedFields, next.metadata.managedFields)
  )
}
