// Under which version a server serves a kind: not every cluster has the definitions of today.
import { apiVersionOf, type KubeObject, type Resource } from '../api/index.ts'
import { isKubeError } from './errors.ts'

export interface ServedVersions {
  /** The resource in the version that was found last; else in its own. */
  of(resource: Resource): Resource
  /** Runs a request for the collection in each version, the resource's own first, until one is served. Rejects as the last one did. */
  find<T>(resource: Resource, request: (served: Resource) => Promise<T>): Promise<T>
}

export function createServedVersions(): ServedVersions {
  const found = new Map<string, Resource>()
  const keyOf = ({ group, plural }: Resource): string => `${plural}.${group}`
  return {
    of: (resource) => (resource.otherVersions === undefined ? resource : (found.get(keyOf(resource)) ?? resource)),
    async find(resource, request) {
      const versions = [resource, ...(resource.otherVersions ?? []).map((version) => ({ ...resource, version }))]
      for (const [index, served] of versions.entries()) {
        try {
          const answer = await request(served)
          found.set(keyOf(resource), served)
          return answer
        } catch (error) {
          if (!isKubeError(error, 404) || index === versions.length - 1) throw error
        }
      }
      throw new TypeError(`${resource.plural}: no version to look for`)
    },
  }
}

/** The object as if it had been served in the version of this resource. */
export function inVersionOf<T extends KubeObject>(resource: Resource, object: T): T {
  const apiVersion = apiVersionOf(resource)
  return object.apiVersion === apiVersion ? object : { ...object, apiVersion }
}
