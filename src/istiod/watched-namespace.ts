// A client that looks at one namespace alone, where no other is named.
import type { KubeClient } from '../kube/index.ts'

/** An empty namespace stands for all. What belongs to no namespace is looked at either way. */
export function watchingNamespace(client: KubeClient, namespace: string): KubeClient {
  if (namespace === '') return client
  return {
    ...client,
    informer: (resource, options = {}) =>
      client.informer(resource, resource.namespaced ? { namespace, ...options } : options),
  }
}
