// What of large objects is worth keeping in memory: the fields that are read here and by the node authorisation. Parts that
// many objects have in common are held once.
import type { AmbientKind, AmbientObjects, Node, Pod } from './inputs.ts'

type KeepFields = { readonly [K in AmbientKind]?: (object: AmbientObjects[K]) => AmbientObjects[K] }

/** Shared parts held at most; then the pool starts anew. */
const mostShared = 50_000

/** How to slim the objects of one cluster, by kind; the others are kept as they are. */
export function createKeptFields(): KeepFields {
  const pool = new Map<string, unknown>()

  function share<T>(part: T): T {
    if (part === undefined || part === null) return part
    const text = JSON.stringify(part)
    const known = pool.get(text)
    if (known !== undefined) return known as T
    if (pool.size >= mostShared) pool.clear()
    pool.set(text, part)
    return part
  }

  return {
    pods: (pod) => keptPod(pod, share),
    nodes: (node) => keptNode(node, share),
  }
}

type Share = <T>(part: T) => T

function keptPod({ apiVersion, kind, metadata, spec, status }: Pod, share: Share): Pod {
  const { namespace, labels, annotations, ownerReferences, ...own } = metadata
  delete own.managedFields
  delete own.finalizers
  return {
    apiVersion: share(apiVersion),
    kind: share(kind),
    metadata: {
      ...own,
      ...(namespace === undefined ? {} : { namespace: share(namespace) }),
      ...(labels === undefined ? {} : { labels: share(labels) }),
      ...(annotations === undefined ? {} : { annotations: share(meshAnnotations(annotations)) }),
      ...(ownerReferences === undefined ? {} : { ownerReferences: share(ownerReferences) }),
    },
    ...(spec === undefined ? {} : { spec: keptSpec(spec, share) }),
    ...(status === undefined ? {} : { status: keptStatus(status, share) }),
  }
}

function keptSpec(spec: NonNullable<Pod['spec']>, share: Share): NonNullable<Pod['spec']> {
  const { nodeName, serviceAccountName, hostNetwork, containers, initContainers } = spec
  const sidecars = initContainers?.filter(({ restartPolicy }) => restartPolicy === 'Always')
  return {
    ...defined({ nodeName: share(nodeName), serviceAccountName: share(serviceAccountName), hostNetwork }),
    containers: share((containers ?? []).map(({ name, ports }) => ({ name, ...defined({ ports }) }))),
    ...(sidecars === undefined || sidecars.length === 0
      ? {}
      : {
          initContainers: share(
            sidecars.map(({ name, ports, restartPolicy }) => ({ name, ...defined({ ports, restartPolicy }) })),
          ),
        }),
  }
}

function keptStatus(status: NonNullable<Pod['status']>, share: Share): NonNullable<Pod['status']> {
  const { phase, podIP, podIPs, conditions } = status
  const ready = conditions
    ?.filter(({ type }) => type === 'Ready')
    .map((one) => ({ type: one.type, status: one.status }))
  return {
    ...defined({
      phase: share(phase),
      podIP,
      podIPs: podIPs?.length === 1 && podIPs[0]?.ip === podIP ? undefined : podIPs,
    }),
    ...(ready === undefined ? {} : { conditions: share(ready) }),
  }
}

function keptNode({ apiVersion, kind, metadata }: Node, share: Share): Node {
  const { name, uid, resourceVersion, labels } = metadata
  return {
    apiVersion: share(apiVersion),
    kind: share(kind),
    metadata: { name, ...defined({ uid, resourceVersion, labels: labels === undefined ? undefined : share(labels) }) },
  }
}

function meshAnnotations(annotations: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(annotations).filter(([name]) => /(^|\.)istio\.io\//.test(name)))
}

type Defined<T> = { [K in keyof T]?: Exclude<T[K], undefined> }

function defined<T extends object>(fields: T): Defined<T> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Defined<T>
}
