// DELETE: at once, or marked and finished later when finalizers, a grace period or dependents hold the object.
import type { KindDefinition, KubeObject } from '../../../api/index.ts'
import { type Core, findEntry, present, toStored } from '../core.ts'
import { badRequest, conflict, notFound } from '../errors.ts'
import { clone, isObject } from '../json.ts'
import { hasGeneration, storageOf } from '../kinds.ts'
import { timestamp } from '../metadata.ts'
import { admissionRequest, type WriteRequest } from './request.ts'
import { isFinished } from './update.ts'

export interface DeleteOptions {
  readonly gracePeriodSeconds?: number
  readonly propagationPolicy?: 'Foreground' | 'Background' | 'Orphan'
  readonly preconditions?: { readonly uid?: string; readonly resourceVersion?: string }
}

const policies: readonly unknown[] = ['Foreground', 'Background', 'Orphan']

/** Options from the body (a DeleteOptions object, or nothing) and the query, which the body overrides. */
export function parseDeleteOptions(
  body: unknown,
  query: URLSearchParams,
): DeleteOptions & { readonly dryRun: boolean } {
  const sent = isObject(body) ? body : {}
  const grace = sent.gracePeriodSeconds ?? numberOf(query.get('gracePeriodSeconds'))
  if (grace !== undefined && grace !== null && (typeof grace !== 'number' || !Number.isInteger(grace))) {
    throw badRequest(`gracePeriodSeconds: Invalid value: ${JSON.stringify(grace)}: must be a whole number`)
  }
  const orphans = sent.orphanDependents ?? query.get('orphanDependents')
  const policy =
    sent.propagationPolicy ??
    query.get('propagationPolicy') ??
    (orphans === true || orphans === 'true' ? 'Orphan' : undefined)
  if (policy !== undefined && !policies.includes(policy)) {
    throw badRequest(
      `propagationPolicy: Unsupported value: ${JSON.stringify(policy)}: supported values: "Foreground", "Background", "Orphan"`,
    )
  }
  const preconditions = isObject(sent.preconditions) ? sent.preconditions : {}
  const dryRun = sent.dryRun ?? query.getAll('dryRun')
  return {
    ...(typeof grace === 'number' ? { gracePeriodSeconds: Math.max(0, grace) } : {}),
    ...(policy === undefined ? {} : { propagationPolicy: policy as 'Foreground' | 'Background' | 'Orphan' }),
    preconditions: {
      ...(typeof preconditions.uid === 'string' ? { uid: preconditions.uid } : {}),
      ...(typeof preconditions.resourceVersion === 'string' ? { resourceVersion: preconditions.resourceVersion } : {}),
    },
    dryRun: Array.isArray(dryRun) && dryRun.includes('All'),
  }
}

function numberOf(text: string | null): number | undefined {
  return text === null || text === '' ? undefined : Number(text)
}

export interface DeleteResult {
  /** The last state, or the state in which it waits for its end. */
  readonly object: KubeObject
  readonly removed: boolean
}

const tries = 12

export async function deleteObject(
  core: Core,
  request: WriteRequest,
  name: string,
  options: DeleteOptions,
): Promise<DeleteResult> {
  const { kind, namespace } = request
  for (let attempt = 1; attempt <= tries; attempt += 1) {
    const entry = findEntry(core, kind, namespace, name)
    if (entry === undefined) throw notFound(kind, name)
    const current = clone(present(kind, entry))
    refuseWrongPreconditions(kind, current, options)
    const admission = admissionRequest(request, 'DELETE', name, undefined, current)
    for (const plugin of core.admission) await plugin.mutate?.(admission)
    for (const plugin of core.admission) await plugin.validate?.(admission)
    if (findEntry(core, kind, namespace, name) !== entry) continue

    const marked = mark(core, kind, current, options)
    const removed = isFinished(kind, marked)
    if (request.dryRun) return { object: marked, removed }
    if (removed) {
      // The last state that watchers see keeps the deletion mark only where one was visible before.
      const last = current.metadata.deletionTimestamp === undefined && kind.kind !== 'Pod' ? current : marked
      core.store.remove(storageOf(kind), namespace, name, toStored(kind, last))
      return { object: last, removed: true }
    }
    if (!isNewMark(current, marked)) return { object: current, removed: false }
    const stored = core.store.put(storageOf(kind), toStored(kind, marked))
    marked.metadata.resourceVersion = String(stored.revision)
    return { object: marked, removed: false }
  }
  throw conflict(kind, name, 'the object changed too often while it was being deleted; please try again')
}

function refuseWrongPreconditions(kind: KindDefinition, current: KubeObject, { preconditions }: DeleteOptions): void {
  const { uid, resourceVersion, name } = current.metadata
  if (preconditions?.uid !== undefined && preconditions.uid !== uid) {
    throw conflict(
      kind,
      name,
      `Precondition failed: UID in precondition: ${preconditions.uid}, UID in object meta: ${uid}`,
    )
  }
  if (preconditions?.resourceVersion !== undefined && preconditions.resourceVersion !== resourceVersion) {
    throw conflict(
      kind,
      name,
      `Precondition failed: ResourceVersion in precondition: ${preconditions.resourceVersion}, ResourceVersion in object meta: ${resourceVersion}`,
    )
  }
}

/** The object with the marks of deletion; whether it can go at once is for the caller to see. */
function mark(core: Core, kind: KindDefinition, current: KubeObject, options: DeleteOptions): KubeObject {
  const marked = clone(current)
  const { metadata } = marked
  const grace = graceOf(kind, current, options)
  const pending = metadata.deletionGracePeriodSeconds ?? Number.POSITIVE_INFINITY
  if (metadata.deletionTimestamp === undefined || grace < pending) {
    const from = metadata.deletionTimestamp === undefined ? core.now() : startOfDeletion(core, metadata)
    metadata.deletionTimestamp = timestamp(new Date(from.getTime() + grace * 1000))
    metadata.deletionGracePeriodSeconds = grace
    if (hasGeneration(kind)) metadata.generation = (metadata.generation ?? 0) + 1
  }
  setDependentsFinalizer(metadata, options.propagationPolicy)
  if (kind.group === '' && kind.kind === 'Namespace') {
    marked.status = { ...(isObject(marked.status) ? marked.status : {}), phase: 'Terminating' }
  }
  return marked
}

function startOfDeletion(core: Core, metadata: KubeObject['metadata']): Date {
  const end = Date.parse(metadata.deletionTimestamp ?? '')
  return Number.isNaN(end) ? core.now() : new Date(end - (metadata.deletionGracePeriodSeconds ?? 0) * 1000)
}

/** Only pods are ended gracefully, and only those that a node may be running. */
function graceOf(kind: KindDefinition, current: KubeObject, options: DeleteOptions): number {
  if (kind.group !== '' || kind.kind !== 'Pod') return 0
  const spec = (current.spec ?? {}) as { nodeName?: string; terminationGracePeriodSeconds?: number }
  const { phase } = (current.status ?? {}) as { phase?: string }
  if (spec.nodeName === undefined || spec.nodeName === '' || phase === 'Succeeded' || phase === 'Failed') return 0
  return options.gracePeriodSeconds ?? spec.terminationGracePeriodSeconds ?? 30
}

function setDependentsFinalizer(metadata: KubeObject['metadata'], policy: DeleteOptions['propagationPolicy']): void {
  if (policy === undefined) return
  const finalizers = (metadata.finalizers ?? []).filter((name) => name !== 'orphan' && name !== 'foregroundDeletion')
  if (policy === 'Orphan') finalizers.push('orphan')
  if (policy === 'Foreground') finalizers.push('foregroundDeletion')
  if (finalizers.length > 0) metadata.finalizers = finalizers
  else delete metadata.finalizers
}

function isNewMark(current: KubeObject, marked: KubeObject): boolean {
  return (
    current.metadata.deletionTimestamp !== marked.metadata.deletionTimestamp ||
    (current.metadata.finalizers ?? []).join() !== (marked.metadata.finalizers ?? []).join()
  )
}
