// The API as the server's own parts use it: the same operations as over HTTP, without authorization.
import type { KindDefinition, KubeObject } from '../../api/index.ts'
import { type Core, objectReader, serverUser } from './core.ts'
import { clone } from './json.ts'
import { createObject } from './operations/create.ts'
import { deleteObject } from './operations/delete.ts'
import type { WriteRequest } from './operations/request.ts'
import { updateObject } from './operations/update.ts'
import type { ApiCore, CoreWriteOptions } from './types.ts'

export function internalApi(core: Core): ApiCore {
  const request = (
    kind: KindDefinition,
    namespace: string | undefined,
    options: CoreWriteOptions = {},
  ): WriteRequest => ({
    kind,
    namespace: kind.namespaced ? (namespace ?? '') : '',
    user: options.user ?? serverUser,
    dryRun: options.dryRun ?? false,
    fieldManager: options.fieldManager ?? 'apiserver',
    fieldValidation: 'Strict',
    options: {},
    warnings: [],
    ...(options.subresource === undefined ? {} : { subresource: options.subresource }),
  })
  return {
    kinds: core.kinds,
    objects: objectReader(core.store),
    create: (kind, object, options) =>
      createObject(core, request(kind, object.metadata.namespace, options), clone(object)),
    async update(kind, object, options) {
      const { name, namespace } = object.metadata
      const next = (): KubeObject => clone(object)
      return (await updateObject(core, request(kind, namespace, options), name, { fields: 'track', next })).object
    },
    async delete(kind, key, options = {}) {
      await deleteObject(core, request(kind, key.namespace, options), key.name, options)
    },
  }
}
