// Writes the system's objects to the API.
import { apiVersionOf, type KubeObject } from '../../api/index.ts'
import type { KubeClient } from '../../kube/index.ts'
import { StandaloneError } from '../error.ts'

/** Server-side apply, in order. @throws StandaloneError when the API does not know a kind */
export async function applySystem(client: KubeClient, objects: readonly KubeObject[]): Promise<void> {
  for (const object of objects) {
    const resource = await client.resolve(object.apiVersion, object.kind)
    if (resource === undefined) {
      throw new StandaloneError('UNKNOWN_KIND', `the API server does not know ${object.apiVersion} ${object.kind}`)
    }
    const { name, namespace } = object.metadata
    const key = resource.namespaced ? { namespace: namespace ?? 'default', name } : { name }
    const body = { ...object, apiVersion: apiVersionOf(resource) }
    await client.patch(resource, key, { kind: 'apply', body, fieldManager: 'lateen-up', force: true })
  }
}
