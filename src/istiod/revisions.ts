// Which objects are this control plane's: those of its revision, of the tags that point to it, and those of none.
import { type KubeObject, type Resource, resources } from '../api/index.ts'
import type { Informer, KubeClient } from '../kube/index.ts'

export interface Revisions extends AsyncDisposable {
  owns(object: KubeObject): boolean
  /** The tags that point to this revision. */
  readonly tags: readonly string[]
  /** Calls the listener when tags have changed. */
  subscribe(listener: () => void): () => void
}

const revisionLabel = 'istio.io/rev'
const tagLabel = 'istio.io/tag'

const webhooks: Resource = {
  group: 'admissionregistration.k8s.io',
  version: 'v1',
  kind: 'MutatingWebhookConfiguration',
  plural: 'mutatingwebhookconfigurations',
  namespaced: false,
}

/** Tags are webhook configurations, or Services of the system namespace, that name a tag and its revision. */
export function followRevisions(client: KubeClient, revision: string, systemNamespace: string): Revisions {
  const stack = new AsyncDisposableStack()
  const listeners = new Set<() => void>()
  const owners = [
    stack.use(client.informer(webhooks, { labelSelector: tagLabel })),
    stack.use(client.informer(resources.services, { namespace: systemNamespace, labelSelector: tagLabel })),
  ]
  let tags: readonly string[] = []

  function recount(): void {
    const now = tagsOf(owners, revision)
    if (now.join() === tags.join()) return
    tags = now
    for (const listener of [...listeners]) listener()
  }
  for (const owner of owners) stack.defer(owner.subscribe(recount))

  return {
    owns({ metadata }) {
      const label = metadata.labels?.[revisionLabel] ?? ''
      return label === '' || label === revision || tags.includes(label)
    },
    get tags() {
      return tags
    },
    subscribe(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  }
}

function tagsOf(owners: readonly Informer<KubeObject>[], revision: string): readonly string[] {
  const tags = owners
    .flatMap((owner) => owner.list())
    .filter(({ metadata }) => metadata.labels?.[revisionLabel] === revision)
    .map(({ metadata }) => metadata.labels?.[tagLabel] ?? '')
  return [...new Set(tags.filter((tag) => tag !== ''))].sort()
}
