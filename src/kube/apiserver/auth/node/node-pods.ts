// The pods of each node with what they refer to, kept current with the store.
import type { KubeObject, ObjectReader } from '../../types.ts'
import { isMirror, noReferences, type PodReferences, podReferences } from './pod-references.ts'

export interface NodePods extends Disposable {
  /** Whether the pod is bound to the node. */
  isBound(node: string, namespace: string, name: string): boolean
  /** Whether one of the node's pods in the namespace refers to what is asked for. */
  refers(node: string, namespace: string, to: (references: PodReferences) => boolean): boolean
  /** The claims that the node's pods use. */
  claims(node: string): Iterable<{ readonly namespace: string; readonly name: string }>
}

interface BoundPod {
  readonly namespace: string
  readonly references: PodReferences
}

const keyOf = (namespace: string, name: string): string => `${namespace}/${name}`

export function followNodePods(objects: ObjectReader): NodePods {
  const nodes = new Map<string, Map<string, BoundPod>>()

  const remove = (pod: KubeObject): void => {
    const node = nodeOf(pod)
    const pods = nodes.get(node)
    pods?.delete(keyOf(pod.metadata.namespace ?? '', pod.metadata.name))
    if (pods?.size === 0) nodes.delete(node)
  }
  const add = (pod: KubeObject): void => {
    const node = nodeOf(pod)
    if (node === '') return
    const { namespace = '', name } = pod.metadata
    const pods = nodes.get(node) ?? new Map<string, BoundPod>()
    const references = isMirror(pod) ? noReferences : podReferences(pod)
    nodes.set(node, pods.set(keyOf(namespace, name), { namespace, references }))
  }
  const unsubscribe = objects.subscribe('', 'pods', ({ kind, object, old }) => {
    if (old !== undefined) remove(old)
    if (kind === 'deleted') remove(object)
    else add(object)
  })

  return {
    isBound: (node, namespace, name) => nodes.get(node)?.has(keyOf(namespace, name)) === true,
    refers: (node, namespace, to) =>
      Iterator.from(nodes.get(node)?.values() ?? []).some((pod) => pod.namespace === namespace && to(pod.references)),
    *claims(node) {
      for (const { namespace, references } of nodes.get(node)?.values() ?? []) {
        for (const name of references.claims) yield { namespace, name }
      }
    },
    [Symbol.dispose]: unsubscribe,
  }
}

function nodeOf(pod: KubeObject): string {
  return (pod.spec as { nodeName?: string } | undefined)?.nodeName ?? ''
}
