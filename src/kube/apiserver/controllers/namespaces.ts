// Empties namespaces that are being deleted, and lets them go when nothing is left.
import type { KubeObject } from '../../../api/index.ts'
import { type Core, findEntry, present } from '../core.ts'
import { ApiError } from '../errors.ts'
import { isStored, storageOf } from '../kinds.ts'
import type { ApiCore } from '../types.ts'
import { createWorkQueue } from './work-queue.ts'

/** Returns the function that stops it. */
export function startNamespaceDeletion(
  core: Core,
  api: ApiCore,
  onError: (error: unknown) => void,
): () => Promise<void> {
  const queue = createWorkQueue(empty, onError)

  async function empty(name: string): Promise<void> {
    const kind = core.kinds.find('', 'v1', 'namespaces')
    const entry = kind === undefined ? undefined : findEntry(core, kind, '', name)
    if (kind === undefined || entry === undefined) return
    const namespace = present(kind, entry) as KubeObject<{ finalizers?: string[] }>
    if (namespace.metadata.deletionTimestamp === undefined) return
    const left = await deleteContent(name)
    const finalizers = namespace.spec?.finalizers ?? []
    if (left > 0 || !finalizers.includes('kubernetes')) return
    await api.update(
      kind,
      { ...namespace, spec: { ...namespace.spec, finalizers: finalizers.filter((one) => one !== 'kubernetes') } },
      { subresource: 'finalize', fieldManager: 'namespace-controller' },
    )
  }

  /** Returns how many objects are still there: those that wait for a finalizer or a node. */
  async function deleteContent(namespace: string): Promise<number> {
    const seen = new Set<string>()
    let left = 0
    for (const kind of core.kinds.list()) {
      const resource = storageOf(kind)
      if (!kind.namespaced || !isStored(kind) || seen.has(resource)) continue
      seen.add(resource)
      for (const entry of core.store.list(resource, namespace)) {
        if (entry.object.metadata.deletionTimestamp === undefined) {
          try {
            await api.delete(kind, { namespace, name: entry.name }, { propagationPolicy: 'Background' })
          } catch (error) {
            if (!(error instanceof ApiError) || error.code !== 404) throw error
          }
        }
      }
      left += core.store.list(resource, namespace).length
    }
    return left
  }

  const isTerminating = (name: string) =>
    core.store.get('/namespaces', '', name)?.object.metadata.deletionTimestamp !== undefined
  const unsubscribe = core.store.onChange((change) => {
    if (change.resource === '/namespaces') {
      if (isTerminating(change.entry.name)) queue.add(change.entry.name)
    } else if (change.kind === 'deleted' && change.entry.namespace !== '' && isTerminating(change.entry.namespace)) {
      queue.add(change.entry.namespace)
    }
  })
  for (const entry of core.store.list('/namespaces')) if (isTerminating(entry.name)) queue.add(entry.name)
  return async () => {
    unsubscribe()
    await queue.close()
  }
}
