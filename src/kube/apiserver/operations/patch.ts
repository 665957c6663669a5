// PATCH in its four forms: JSON patch, merge patch, strategic merge patch and server-side apply.
import { apiVersionOf, type KubeObject } from '../../../api/index.ts'
import { applyConfiguration } from '../apply/apply.ts'
import { type Core, findEntry } from '../core.ts'
import { ApiError, badRequest, unsupportedMediaType } from '../errors.ts'
import { isObject } from '../json.ts'
import { jsonPatch } from '../patch/json-patch.ts'
import { mergePatch } from '../patch/merge.ts'
import { strategicMergePatch } from '../patch/strategic.ts'
import { createObject } from './create.ts'
import { acceptObject, type WriteRequest } from './request.ts'
import { type UpdateResult, updateObject } from './update.ts'

export const patchTypes = {
  'application/json-patch+json': 'json',
  'application/merge-patch+json': 'merge',
  'application/strategic-merge-patch+json': 'strategic',
  'application/apply-patch+yaml': 'apply',
  'application/apply-patch+json': 'apply',
} as const

export type PatchType = (typeof patchTypes)[keyof typeof patchTypes]

export interface PatchResult extends UpdateResult {
  readonly created: boolean
}

export async function patchObject(
  core: Core,
  request: WriteRequest,
  name: string,
  patch: { readonly type: PatchType; readonly body: unknown; readonly force: boolean },
): Promise<PatchResult> {
  if (patch.type === 'apply') return applyObject(core, request, name, patch.body, patch.force)
  const { kind } = request
  if (patch.type === 'strategic' && kind.strategicMergePatch !== true) {
    throw unsupportedMediaType(
      'the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml',
    )
  }
  const result = await updateObject(core, request, name, {
    fields: 'track',
    next: (current) => patched(patch.type, current, patch.body, request) as KubeObject,
  })
  return { ...result, created: false }
}

export function patched(type: PatchType, current: KubeObject, body: unknown, request: WriteRequest): unknown {
  switch (type) {
    case 'json':
      return jsonPatch(current, body)
    case 'merge':
      if (!isObject(body)) throw badRequest('a merge patch must be a JSON object')
      return mergePatch(current, body)
    case 'strategic':
      return strategicMergePatch(current, body, request.kind.schema)
    case 'apply':
      throw badRequest('server-side apply is not possible here')
  }
}

async function applyObject(
  core: Core,
  request: WriteRequest,
  name: string,
  body: unknown,
  force: boolean,
): Promise<PatchResult> {
  const { kind, namespace } = request
  if (request.fieldManager === '') {
    throw new ApiError(
      422,
      'Invalid',
      'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch',
      {
        causes: [
          {
            reason: 'FieldValueRequired',
            field: 'fieldManager',
            message: 'Required value: is required for apply patch',
          },
        ],
      },
    )
  }
  const configuration = acceptObject(request, body)
  if (configuration.metadata.managedFields !== undefined) throw badRequest('metadata.managedFields must be nil')
  if (configuration.metadata.name === '') configuration.metadata.name = name
  if (configuration.metadata.name !== name) {
    throw badRequest(
      `the name of the object (${configuration.metadata.name}) does not match the name on the URL (${name})`,
    )
  }
  const application = {
    manager: request.fieldManager,
    apiVersion: apiVersionOf(kind),
    now: core.now(),
    force,
    ...(request.subresource === undefined ? {} : { subresource: request.subresource }),
  }
  const quiet: WriteRequest = { ...request, fieldValidation: 'Ignore' }
  if (findEntry(core, kind, namespace, name) === undefined && request.subresource === undefined) {
    const object = applyConfiguration(kind, undefined, configuration, application)
    try {
      const created = await createObject(core, quiet, object, { name, fields: 'manual' })
      return { object: created, removed: false, created: true }
    } catch (error) {
      // Someone else was faster: apply to what is there now.
      if (!(error instanceof ApiError) || error.reason !== 'AlreadyExists') throw error
    }
  }
  const result = await updateObject(core, quiet, name, {
    fields: 'manual',
    next: (current) => applyConfiguration(kind, current, configuration, application),
  })
  return { ...result, created: false }
}
