// Objects by their controller, including the controller's own writes that the informer has not seen yet.
import type { KubeObject } from '../../api/index.ts'
import type { Informer } from '../../kube/index.ts'
import { controllerOf, timestamp } from './objects.ts'

export interface Owned<T extends KubeObject> extends Disposable {
  /** The objects that the owner controls: those of the informer, without what is known to be old. */
  of(ownerUid: string): T[]
  /** To be told of an object that was created, before the informer has it. */
  created(object: T): void
  /** To be told of an object whose deletion was asked for. */
  deleted(object: T): void
}

/** A write that the informer does not show within this time is forgotten: the object was gone before it was seen. */
const forgetAfterMs = 15_000

export function createOwned<T extends KubeObject>(informer: Informer<T>): Owned<T> {
  const byOwner = new Map<string, Map<string, T>>()
  const unseen = new Map<string, { readonly object: T; readonly until: number }>()
  const deleting = new Map<string, number>()
  const seen = new Set<string>()

  const place = (object: T): Map<string, T> | undefined => {
    const owner = controllerOf(object)?.uid
    if (owner === undefined) return undefined
    const objects = byOwner.get(owner) ?? new Map<string, T>()
    byOwner.set(owner, objects)
    return objects
  }
  const remove = (object: T): void => {
    const owner = controllerOf(object)?.uid
    const objects = owner === undefined ? undefined : byOwner.get(owner)
    objects?.delete(object.metadata.uid ?? '')
    if (owner !== undefined && objects?.size === 0) byOwner.delete(owner)
  }
  const unsubscribe = informer.subscribe((changes) => {
    for (const change of changes) {
      const uid = change.object.metadata.uid ?? ''
      unseen.delete(uid)
      if (change.kind === 'updated') remove(change.old)
      if (change.kind === 'deleted') {
        remove(change.object)
        deleting.delete(uid)
        seen.delete(uid)
      } else {
        seen.add(uid)
        place(change.object)?.set(uid, change.object)
      }
    }
  })

  return {
    of(ownerUid) {
      const now = Date.now()
      for (const [uid, { until }] of unseen) if (until < now) unseen.delete(uid)
      for (const [uid, until] of deleting) if (until < now) deleting.delete(uid)
      const fresh = [...unseen.values()]
        .map(({ object }) => object)
        .filter((object) => controllerOf(object)?.uid === ownerUid)
      return [...(byOwner.get(ownerUid)?.values() ?? []), ...fresh].map((object) => {
        const isMarked = object.metadata.deletionTimestamp !== undefined || !deleting.has(object.metadata.uid ?? '')
        return isMarked ? object : { ...object, metadata: { ...object.metadata, deletionTimestamp: timestamp(now) } }
      })
    },
    created(object) {
      const uid = object.metadata.uid ?? ''
      if (!seen.has(uid)) unseen.set(uid, { object, until: Date.now() + forgetAfterMs })
    },
    deleted(object) {
      deleting.set(object.metadata.uid ?? '', Date.now() + forgetAfterMs)
    },
    [Symbol.dispose]: unsubscribe,
  }
}
