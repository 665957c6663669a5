// Garbage collection by owner references: deletes what has lost its last owner, and carries out foreground and orphaning deletion.
import type { KindDefinition, KubeObject, OwnerReference } from '../../../api/index.ts'
import { type Core, present } from '../core.ts'
import { ApiError } from '../errors.ts'
import { isStored, storageOf } from '../kinds.ts'
import type { Change } from '../store/store.ts'
import type { ApiCore } from '../types.ts'
import { createWorkQueue } from './work-queue.ts'

interface Node {
  readonly resource: string
  readonly namespace: string
  readonly name: string
  readonly uid: string
  readonly owners: readonly OwnerReference[]
}

const foreground = 'foregroundDeletion'
const orphan = 'orphan'

/** Returns the function that stops it. */
export function startGarbageCollection(
  core: Core,
  api: ApiCore,
  onError: (error: unknown) => void,
): () => Promise<void> {
  const nodes = new Map<string, Node>()
  const dependents = new Map<string, Set<string>>()
  const queue = createWorkQueue(process, onError)

  function learn(resource: string, object: KubeObject): void {
    const { uid, namespace = '', name, ownerReferences: owners = [] } = object.metadata
    if (uid === undefined) return
    forget(uid)
    nodes.set(uid, { resource, namespace, name, uid, owners })
    for (const owner of owners) {
      const known = dependents.get(owner.uid) ?? new Set()
      dependents.set(owner.uid, known.add(uid))
    }
    const { finalizers = [], deletionTimestamp } = object.metadata
    const isWaiting =
      deletionTimestamp !== undefined && (finalizers.includes(foreground) || finalizers.includes(orphan))
    if (owners.length > 0 || isWaiting) queue.add(uid)
  }

  function forget(uid: string): void {
    for (const owner of nodes.get(uid)?.owners ?? []) {
      const known = dependents.get(owner.uid)
      known?.delete(uid)
      if (known?.size === 0) dependents.delete(owner.uid)
    }
    nodes.delete(uid)
  }

  function observe(change: Change): void {
    const { object } = change.entry
    const { uid, ownerReferences = [] } = object.metadata
    if (uid === undefined) return
    if (change.kind !== 'deleted') {
      learn(change.resource, object)
    } else {
      forget(uid)
      for (const dependent of dependents.get(uid) ?? []) queue.add(dependent)
    }
    // An owner that waits for its dependents looks again when one of them changes or goes.
    for (const owner of ownerReferences) if (isWaiting(owner.uid)) queue.add(owner.uid)
  }

  function objectOf(node: Node): KubeObject | undefined {
    const entry = core.store.get(node.resource, node.namespace, node.name)
    return entry?.object.metadata.uid === node.uid ? entry.object : undefined
  }

  function isWaiting(uid: string): boolean {
    const node = nodes.get(uid)
    const metadata = node === undefined ? undefined : objectOf(node)?.metadata
    return metadata?.deletionTimestamp !== undefined && (metadata.finalizers?.length ?? 0) > 0
  }

  async function process(uid: string): Promise<void> {
    const node = nodes.get(uid)
    const object = node === undefined ? undefined : objectOf(node)
    if (node === undefined || object === undefined) return
    const { deletionTimestamp, finalizers = [] } = object.metadata
    if (deletionTimestamp !== undefined) {
      if (finalizers.includes(orphan)) return releaseDependents(node, object)
      if (finalizers.includes(foreground)) return deleteDependents(node, object)
      return
    }
    await checkOwners(node, object)
  }

  async function checkOwners(node: Node, object: KubeObject): Promise<void> {
    if (node.owners.length === 0) return
    const states = node.owners.map((owner) => ({ owner, state: ownerState(owner, node) }))
    const solid = states.filter(({ state }) => state === 'there')
    if (solid.length === states.length) return
    if (solid.length > 0) {
      const kept = solid.map(({ owner }) => owner)
      await write(node, { ...object, metadata: { ...object.metadata, ownerReferences: kept } })
      return
    }
    const isForeground = states.some(({ state }) => state === 'foreground') && (dependents.get(node.uid)?.size ?? 0) > 0
    const kind = kindOf(node)
    if (kind === undefined) return
    await ignoreMissing(
      api.delete(kind, keyOf(node), {
        propagationPolicy: isForeground ? 'Foreground' : 'Background',
        preconditions: { uid: node.uid },
      }),
    )
  }

  /** An owner counts while it exists and is not deleting its dependents. */
  function ownerState(owner: OwnerReference, dependent: Node): 'there' | 'foreground' | 'gone' {
    const node = nodes.get(owner.uid)
    const object = node === undefined ? undefined : objectOf(node)
    if (node === undefined || object === undefined) return 'gone'
    // A namespaced owner in another namespace can't own: the reference is as good as dangling.
    if (node.namespace !== '' && node.namespace !== dependent.namespace) return 'gone'
    const { deletionTimestamp, finalizers = [] } = object.metadata
    return deletionTimestamp !== undefined && finalizers.includes(foreground) ? 'foreground' : 'there'
  }

  async function deleteDependents(node: Node, object: KubeObject): Promise<void> {
    const below = [...(dependents.get(node.uid) ?? [])].map((uid) => nodes.get(uid)).filter((one) => one !== undefined)
    const blocking = below.filter((one) =>
      one.owners.some((owner) => owner.uid === node.uid && owner.blockOwnerDeletion === true),
    )
    for (const one of below) queue.add(one.uid)
    if (blocking.length > 0) return
    await removeFinalizer(node, object, foreground)
  }

  async function releaseDependents(node: Node, object: KubeObject): Promise<void> {
    for (const uid of [...(dependents.get(node.uid) ?? [])]) {
      const one = nodes.get(uid)
      const dependent = one === undefined ? undefined : objectOf(one)
      if (one === undefined || dependent === undefined) continue
      const kept = one.owners.filter((owner) => owner.uid !== node.uid)
      await write(one, { ...dependent, metadata: { ...dependent.metadata, ownerReferences: kept } })
    }
    await removeFinalizer(node, object, orphan)
  }

  function removeFinalizer(node: Node, object: KubeObject, finalizer: string): Promise<void> {
    const finalizers = (object.metadata.finalizers ?? []).filter((one) => one !== finalizer)
    return write(node, { ...object, metadata: { ...object.metadata, finalizers } })
  }

  async function write(node: Node, object: KubeObject): Promise<void> {
    const kind = kindOf(node)
    const entry = core.store.get(node.resource, node.namespace, node.name)
    if (kind === undefined || entry === undefined) return
    const { apiVersion } = present(kind, entry)
    await ignoreMissing(
      api.update(kind, { ...object, apiVersion, kind: kind.kind }, { fieldManager: 'garbage-collector' }),
    )
  }

  function kindOf(node: Node): KindDefinition | undefined {
    return core.kinds.list().find((kind) => isStored(kind) && storageOf(kind) === node.resource)
  }

  const unsubscribe = core.store.onChange(observe)
  for (const resource of core.store.resources) {
    for (const entry of core.store.list(resource)) learn(resource, entry.object)
  }
  return async () => {
    unsubscribe()
    await queue.close()
  }
}

function keyOf(node: Node): { name: string; namespace?: string } {
  return node.namespace === '' ? { name: node.name } : { name: node.name, namespace: node.namespace }
}

/** Someone else was faster: the object is gone or another one now, which its own change tells. */
async function ignoreMissing(write: Promise<unknown>): Promise<void> {
  try {
    await write
  } catch (error) {
    if (!(error instanceof ApiError) || (error.code !== 404 && !error.message.includes('Precondition failed')))
      throw error
  }
}
