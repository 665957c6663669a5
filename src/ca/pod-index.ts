// The pods of one cluster, by name and by the service account they run with on a node.

/** What node authorisation looks at in a pod. */
export interface PodView {
  readonly name: string
  readonly namespace: string
  readonly uid: string
  readonly serviceAccount: string
  /** Empty while it is not scheduled. */
  readonly node: string
  readonly phase: string
}

export interface PodLookup {
  get(namespace: string, name: string): PodView | undefined
  /** The pods of a service account on a node. */
  on(node: string, namespace: string, serviceAccount: string): Iterable<PodView>
}

export interface PodIndex extends PodLookup {
  /** Adds a pod or replaces the one of the same name. */
  set(pod: PodView): void
  delete(namespace: string, name: string): void
}

/** The shape of a Pod, as far as it is read here. */
interface PodObject {
  readonly metadata: { readonly name: string; readonly namespace?: string; readonly uid?: string }
  readonly spec?: unknown
  readonly status?: unknown
}

/** A Pod of the API as the index takes it. */
export function podViewOf({ metadata, spec, status }: PodObject): PodView {
  return {
    name: metadata.name,
    namespace: metadata.namespace ?? '',
    uid: metadata.uid ?? '',
    serviceAccount: textField(spec, 'serviceAccountName'),
    node: textField(spec, 'nodeName'),
    phase: textField(status, 'phase'),
  }
}

export function createPodIndex(pods: Iterable<PodView> = []): PodIndex {
  const byName = new Map<string, PodView>()
  const byAccount = new Map<string, Set<PodView>>()
  const nameKey = (namespace: string, name: string): string => `${namespace}/${name}`
  const accountKey = (node: string, namespace: string, account: string): string => `${node}/${namespace}/${account}`

  function remove(namespace: string, name: string): void {
    const pod = byName.get(nameKey(namespace, name))
    if (pod === undefined) return
    byName.delete(nameKey(namespace, name))
    const key = accountKey(pod.node, pod.namespace, pod.serviceAccount)
    const set = byAccount.get(key)
    set?.delete(pod)
    if (set?.size === 0) byAccount.delete(key)
  }

  const index: PodIndex = {
    get: (namespace, name) => byName.get(nameKey(namespace, name)),
    on: (node, namespace, serviceAccount) => byAccount.get(accountKey(node, namespace, serviceAccount)) ?? [],
    set(pod) {
      remove(pod.namespace, pod.name)
      byName.set(nameKey(pod.namespace, pod.name), pod)
      if (pod.node === '') return
      const key = accountKey(pod.node, pod.namespace, pod.serviceAccount)
      byAccount.set(key, (byAccount.get(key) ?? new Set()).add(pod))
    },
    delete: remove,
  }
  for (const pod of pods) index.set(pod)
  return index
}

function textField(of: unknown, name: string): string {
  const value = typeof of === 'object' && of !== null ? (of as Readonly<Record<string, unknown>>)[name] : undefined
  return typeof value === 'string' ? value : ''
}
