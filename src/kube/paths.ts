// URL paths of the Kubernetes API.
import type { ObjectKey, Resource } from '../api/index.ts'
import type { ListOptions } from './types.ts'

/** The path of a resource's collection, in one namespace or over all. */
export function collectionPath(resource: Resource, namespace?: string): string {
  const root = resource.group === '' ? `/api/${resource.version}` : `/apis/${resource.group}/${resource.version}`
  if (!resource.namespaced || namespace === undefined || namespace === '') return `${root}/${resource.plural}`
  return `${root}/namespaces/${segment(namespace, resource)}/${resource.plural}`
}

export function objectPath(resource: Resource, key: ObjectKey, subresource?: string): string {
  if (key.name === '') throw new TypeError(`${resource.plural}: the object has no name`)
  if (resource.namespaced && !key.namespace)
    throw new TypeError(`${resource.plural} ${key.name}: the namespace is missing`)
  const path = `${collectionPath(resource, key.namespace)}/${segment(key.name, resource)}`
  return subresource === undefined ? path : `${path}/${subresource}`
}

/** Servers and proxies read a segment of dots as another path. No object is called so. */
function segment(name: string, { plural }: Resource): string {
  if (name === '.' || name === '..') throw new TypeError(`${plural}: "${name}" is no name`)
  return encodeURIComponent(name)
}

export function withQuery(
  path: string,
  query: Readonly<Record<string, string | number | boolean | undefined>>,
): string {
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== '') search.set(name, String(value))
  }
  const text = search.toString()
  return text === '' ? path : `${path}?${text}`
}

export function selection(options: ListOptions): { labelSelector?: string; fieldSelector?: string } {
  return {
    ...(options.labelSelector === undefined ? {} : { labelSelector: options.labelSelector }),
    ...(options.fieldSelector === undefined ? {} : { fieldSelector: options.fieldSelector }),
  }
}
