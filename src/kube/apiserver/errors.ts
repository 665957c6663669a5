// Failures of API requests, as the Status objects that Kubernetes clients understand.
import type { Cause } from '../../api/index.ts'

export interface StatusDetails {
  readonly name?: string
  readonly group?: string
  readonly kind?: string
  readonly uid?: string
  readonly causes?: readonly { readonly reason?: string; readonly message?: string; readonly field?: string }[]
  readonly retryAfterSeconds?: number
}

export interface Status {
  readonly kind: 'Status'
  readonly apiVersion: 'v1'
  readonly metadata: Record<string, unknown>
  readonly status: 'Success' | 'Failure'
  readonly message?: string
  readonly reason?: string
  readonly details?: StatusDetails
  readonly code?: number
}

/** A refused request. `code` is the HTTP status, `reason` the machine-readable word. */
export class ApiError extends Error {
  readonly code: number
  readonly reason: string
  readonly details: StatusDetails | undefined

  constructor(code: number, reason: string, message: string, details?: StatusDetails, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'ApiError'
    this.code = code
    this.reason = reason
    this.details = details
  }

  toStatus(): Status {
    return {
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Failure',
      message: this.message,
      ...(this.reason === '' ? {} : { reason: this.reason }),
      ...(this.details === undefined ? {} : { details: this.details }),
      code: this.code,
    }
  }
}

interface ResourceName {
  readonly group: string
  readonly plural: string
}

function qualified({ group, plural }: ResourceName): string {
  return group === '' ? plural : `${plural}.${group}`
}

function detailsOf(resource: ResourceName, name?: string): StatusDetails {
  return {
    ...(name === undefined ? {} : { name }),
    ...(resource.group === '' ? {} : { group: resource.group }),
    kind: resource.plural,
  }
}

export function badRequest(message: string): ApiError {
  return new ApiError(400, 'BadRequest', message)
}

export function unauthorized(message = 'Unauthorized'): ApiError {
  return new ApiError(401, 'Unauthorized', message)
}

export function forbidden(resource: ResourceName, name: string, why: string): ApiError {
  const subject = name === '' ? qualified(resource) : `${qualified(resource)} "${name}"`
  return new ApiError(403, 'Forbidden', `${subject} is forbidden: ${why}`, detailsOf(resource, name))
}

export function notFound(resource: ResourceName, name: string): ApiError {
  return new ApiError(404, 'NotFound', `${qualified(resource)} "${name}" not found`, detailsOf(resource, name))
}

export function pathNotFound(): ApiError {
  return new ApiError(404, 'NotFound', 'the server could not find the requested resource', {})
}

export function methodNotAllowed(): ApiError {
  return new ApiError(405, 'MethodNotAllowed', 'the server does not allow this method on the requested resource', {})
}

export function alreadyExists(resource: ResourceName, name: string): ApiError {
  return new ApiError(
    409,
    'AlreadyExists',
    `${qualified(resource)} "${name}" already exists`,
    detailsOf(resource, name),
  )
}

export function conflict(resource: ResourceName, name: string, why: string): ApiError {
  return new ApiError(
    409,
    'Conflict',
    `Operation cannot be fulfilled on ${qualified(resource)} "${name}": ${why}`,
    detailsOf(resource, name),
  )
}

export function modified(resource: ResourceName, name: string): ApiError {
  return conflict(
    resource,
    name,
    'the object has been modified; please apply your changes to the latest version and try again',
  )
}

export function invalid(kind: { group: string; kind: string }, name: string, causes: readonly Cause[]): ApiError {
  const texts = causes.map((cause) => (cause.field === '' ? cause.message : `${cause.field}: ${cause.message}`))
  const what = kind.group === '' ? kind.kind : `${kind.kind}.${kind.group}`
  const text = texts.length === 1 ? texts[0] : `[${texts.join(', ')}]`
  return new ApiError(422, 'Invalid', `${what} "${name}" is invalid: ${text}`, {
    name,
    ...(kind.group === '' ? {} : { group: kind.group }),
    kind: kind.kind,
    causes,
  })
}

export function expired(message: string): ApiError {
  return new ApiError(410, 'Expired', message)
}

export function unsupportedMediaType(message: string): ApiError {
  return new ApiError(415, 'UnsupportedMediaType', message)
}

export function internalError(cause: unknown): ApiError {
  const message = cause instanceof Error ? cause.message : String(cause)
  return new ApiError(500, 'InternalError', `Internal error occurred: ${message}`, { causes: [{ message }] }, cause)
}
