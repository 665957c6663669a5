// Under which version a server serves a kind: not every cluster has the definitions of today.
import { apiVersionOf, type KubeObject, type Resource } from '../api/index.ts'
import { isKubeError, type KubeError } from './errors.ts'

export interface ServedVersions {
  /** The resource in the version that was found last; else in its own. */
  of(resource: Resource): Resource
  /**
   * Runs a request in each version, that of `first` before the others, until one is served. A version is not served where the answer is 404
   * and names no object. Rejects as the first did where none is served.
   */
  find<T>(resource: Resource, request: (served: Resource) => Promise<T>, first?: Resource): Promise<T>
}

export function createServedVersions(): ServedVersions {
  const found = new Map<string, Resource>()
  const keyOf = ({ group, plural }: Resource): string => `${plural}.${group}`
  return {
    of: (resource) => (resource.otherVersions === undefined ? resource : (found.get(keyOf(resource)) ?? resource)),
    async find(resource, request, first = resource) {
      const { otherVersions } = resource
      if (otherVersions === undefined) return request(resource)
      const all = [resource, ...otherVersions.map((version) => ({ ...resource, version }))]
      let notServed: unknown
      for (const served of [first, ...all.filter(({ version }) => version !== first.version)]) {
        try {
          const answer = await request(served)
          found.set(keyOf(resource), served)
          return answer
        } catch (error) {
          if (!isKubeError(error, 404)) throw error
          if (namesObject(error)) {
            found.set(keyOf(resource), served)
            throw error
          }
          notServed ??= error
        }
      }
      throw notServed
    },
  }
}

/** An object of the resource's kind in the version of this resource; anything else, as subresources take and answer, as it is. */
export function inVersionOf<T>(resource: Resource, value: T): T {
  if (typeof value !== 'object' || value === null) return value
  const { apiVersion: before, kind } = value as Partial<KubeObject>
  const apiVersion = apiVersionOf(resource)
  if (kind !== resource.kind || before === undefined || before === apiVersion) return value
  return groupOf(before) === resource.group ? { ...value, apiVersion } : value
}

function groupOf(apiVersion: string): string {
  return apiVersion.includes('/') ? apiVersion.slice(0, apiVersion.indexOf('/')) : ''
}

/** An API server says which object is not there; of a path that it does not know it has no name to tell. */
function namesObject({ status }: KubeError): boolean {
  const name = (status as { readonly details?: { readonly name?: unknown } } | undefined)?.details?.name
  return typeof name === 'string' && name !== ''
}
