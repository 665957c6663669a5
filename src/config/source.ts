// What a config source is: for each kind a cache of its objects, kept current. A Kubernetes client is one.
import type { KubeObject, Resource } from '../api/index.ts'
import type { Informer } from '../kube/index.ts'

export interface ConfigSource {
  /** The objects of one kind. Who asks for it disposes of it. */
  informer<T extends KubeObject>(resource: Resource): Informer<T>
}

/** The key of an object among those of its kind. */
export function nameKey({ namespace = '', name }: { readonly namespace?: string; readonly name: string }): string {
  return `${namespace}/${name}`
}

/** The key of a kind, whatever version it is written in. */
export function kindKey({ group, kind }: { readonly group: string; readonly kind: string }): string {
  return `${group}/${kind}`
}

/** The key of an object's kind. */
export function kindOf({ apiVersion, kind }: KubeObject): string {
  return kindKey({ group: apiVersion.includes('/') ? (apiVersion.split('/')[0] ?? '') : '', kind })
}
