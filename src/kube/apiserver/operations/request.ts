// A write request after routing, and the checks that every write shares.
import { apiVersionOf, type KindDefinition, type KubeObject } from '../../../api/index.ts'
import type { Core } from '../core.ts'
import { badRequest, invalid } from '../errors.ts'
import { isObject } from '../json.ts'
import { validateMetadata } from '../metadata.ts'
import type { AdmissionRequest, AuthenticatedUser } from '../types.ts'
import { dropNulls, refuseWrongShape } from './shape.ts'

export type FieldValidation = 'Strict' | 'Warn' | 'Ignore'

export interface WriteRequest {
  readonly kind: KindDefinition
  readonly namespace: string
  readonly user: AuthenticatedUser
  readonly dryRun: boolean
  readonly fieldManager: string
  readonly fieldValidation: FieldValidation
  /** The request's options as admission sees them. */
  readonly options: Readonly<Record<string, unknown>>
  /** Texts for Warning headers are added here. */
  readonly warnings: string[]
  readonly subresource?: string
}

/** Checks that a body is an object of the kind in the right namespace, and drops (or refuses) fields that the kind does not have. */
export function acceptObject(request: WriteRequest, body: unknown): KubeObject {
  const { kind, namespace } = request
  if (!isObject(body)) throw badRequest('the body of the request must be a JSON object')
  const apiVersion = body.apiVersion ?? apiVersionOf(kind)
  if (apiVersion !== apiVersionOf(kind)) {
    throw badRequest(
      `the API version in the data (${apiVersion}) does not match the expected API version (${apiVersionOf(kind)})`,
    )
  }
  if (body.kind !== undefined && body.kind !== kind.kind) {
    throw badRequest(`the kind in the data (${body.kind}) does not match the expected kind (${kind.kind})`)
  }
  const metadata = body.metadata ?? {}
  if (!isObject(metadata)) throw badRequest('metadata must be an object')
  const named = metadata.namespace
  if (kind.namespaced) {
    if (named !== undefined && named !== '' && named !== namespace) {
      throw badRequest(
        `the namespace of the provided object does not match the namespace sent on the request (${named} is not ${namespace})`,
      )
    }
    metadata.namespace = namespace
  } else delete metadata.namespace
  const object = { ...body, apiVersion: apiVersionOf(kind), kind: kind.kind, metadata } as unknown as KubeObject
  dropEmpty(object.metadata)
  if (kind.custom !== true) dropNulls(object)
  refuseWrongShape(kind, object)
  refuseUnknownFields(request, object)
  object.metadata.name ??= ''
  return object
}

/** Empty and null fields of the metadata are the same as absent ones. */
function dropEmpty(metadata: KubeObject['metadata']): void {
  for (const [key, value] of Object.entries(metadata)) {
    const isEmpty = value === null || (typeof value === 'object' && Object.keys(value).length === 0)
    // An emptied record of managers is a wish: to begin a new one.
    if (isEmpty && key !== 'managedFields') Reflect.deleteProperty(metadata, key)
  }
}

function refuseUnknownFields(request: WriteRequest, object: KubeObject): void {
  const unknown = request.kind.prune?.(object) ?? []
  if (unknown.length === 0 || request.fieldValidation === 'Ignore') return
  const texts = unknown.map((path) => `unknown field "${path}"`)
  if (request.fieldValidation === 'Warn') request.warnings.push(...texts)
  else {
    const { kind } = request
    throw badRequest(
      `${kind.kind} in version "${kind.version}" cannot be handled as a ${kind.kind}: strict decoding error: ${texts.join(', ')}`,
    )
  }
}

/** Runs admission around validation; returns the object as admitted. */
export async function admit(
  core: Core,
  request: WriteRequest,
  operation: 'CREATE' | 'UPDATE',
  object: KubeObject,
  old: KubeObject | undefined,
  validate: (object: KubeObject) => void,
): Promise<KubeObject> {
  const admission: AdmissionRequest = admissionRequest(request, operation, object.metadata.name, object, old)
  for (const plugin of core.admission) await plugin.mutate?.(admission)
  const admitted = admission.object ?? object
  // A plugin may have added fields; what the server itself has set is not for plugins to change.
  admitted.apiVersion = object.apiVersion
  admitted.kind = object.kind
  request.kind.applyDefaults?.(admitted)
  validate(admitted)
  admission.object = admitted
  for (const plugin of core.admission) await plugin.validate?.(admission)
  return admitted
}

export function admissionRequest(
  request: WriteRequest,
  operation: AdmissionRequest['operation'],
  name: string,
  object?: KubeObject,
  oldObject?: KubeObject,
): AdmissionRequest {
  return {
    operation,
    kind: request.kind,
    name,
    user: request.user,
    dryRun: request.dryRun,
    options: request.options,
    warnings: request.warnings,
    ...(request.kind.namespaced ? { namespace: request.namespace } : {}),
    ...(request.subresource === undefined ? {} : { subresource: request.subresource }),
    ...(object === undefined ? {} : { object }),
    ...(oldObject === undefined ? {} : { oldObject }),
  }
}

/** Throws 422 with every fault. */
export function refuseInvalid(kind: KindDefinition, object: KubeObject, old: KubeObject | undefined): void {
  const general = validateMetadata(kind, object, old)
  const own = kind.validate?.(object, old) ?? []
  const causes = [...general, ...own.filter((cause) => !general.some((known) => known.field === cause.field))]
  if (causes.length > 0) throw invalid(kind, object.metadata.name, causes)
}
