// The error of every failed request to an API server.
import type { KubeErrorShape } from './types.ts'

/** `code` is the HTTP status, 0 when the server was not reached or the connection broke; `reason` the machine-readable word of the Status. */
export class KubeError extends Error implements KubeErrorShape {
  readonly code: number
  readonly reason: string
  readonly status?: unknown
  /** How long the server asks to be left alone. */
  readonly retryAfterMs: number

  constructor(
    message: string,
    details: {
      readonly code: number
      readonly reason: string
      readonly status?: unknown
      readonly retryAfterMs?: number
      readonly cause?: unknown
    },
  ) {
    super(message, { cause: details.cause })
    this.name = 'KubeError'
    this.code = details.code
    this.reason = details.reason
    this.retryAfterMs = details.retryAfterMs ?? 0
    if (details.status !== undefined) this.status = details.status
  }
}

/**
 * The error of a response that is not 2xx. `text` is its body: a Status object when the API server itself wrote it. `retryAfter` is the header
 * of that name, the only place where a server that has no room says when to come again.
 */
export function errorOfResponse(request: string, httpStatus: number, text: string, retryAfter?: string): KubeError {
  const status = parseStatus(text)
  const said = status?.message ?? text.trim().slice(0, 500)
  return new KubeError(`${request}: ${said === '' ? `HTTP ${httpStatus}` : said}`, {
    code: httpStatus,
    reason: status?.reason ?? reasonOfCode(httpStatus),
    retryAfterMs: boundedMs(status?.details?.retryAfterSeconds ?? secondsOf(retryAfter)),
    ...(status === undefined ? {} : { status }),
  })
}

/** The error of the Status object in an ERROR event of a watch. */
export function errorOfStatus(request: string, object: unknown): KubeError {
  const status = isStatus(object) ? object : undefined
  const code = typeof status?.code === 'number' ? status.code : 500
  return new KubeError(`${request}: ${status?.message ?? 'the server ended the watch with an error'}`, {
    code,
    reason: status?.reason ?? reasonOfCode(code),
    retryAfterMs: boundedMs(status?.details?.retryAfterSeconds),
    status: object,
  })
}

/** The error of a connection that could not be made or broke. */
export function errorOfConnection(request: string, cause: unknown): KubeError {
  const message = cause instanceof Error ? cause.message : String(cause)
  return new KubeError(`${request}: ${message}`, { code: 0, reason: 'Unreachable', cause })
}

export function isKubeError(error: unknown, code?: number): error is KubeError {
  return error instanceof KubeError && (code === undefined || error.code === code)
}

/** How long the server asks to be left alone, in milliseconds, at most a minute. */
export function retryAfterMsOf(error: unknown): number {
  return isKubeError(error) ? error.retryAfterMs : 0
}

function boundedMs(seconds: unknown): number {
  return typeof seconds === 'number' && seconds > 0 ? Math.min(seconds, 60) * 1000 : 0
}

/** RFC 9110, section 10.2.3: seconds, or a date, which no API server sends. */
function secondsOf(retryAfter: string | undefined): number | undefined {
  return retryAfter !== undefined && /^\d+$/.test(retryAfter) ? Number(retryAfter) : undefined
}

interface Status {
  readonly kind: 'Status'
  readonly message?: string
  readonly reason?: string
  readonly code?: number
  readonly details?: { readonly retryAfterSeconds?: number }
}

function isStatus(value: unknown): value is Status {
  return typeof value === 'object' && value !== null && (value as { kind?: unknown }).kind === 'Status'
}

function parseStatus(text: string): Status | undefined {
  if (!text.startsWith('{')) return undefined
  try {
    const value: unknown = JSON.parse(text)
    return isStatus(value) ? value : undefined
  } catch {
    return undefined
  }
}

const reasons: Readonly<Record<number, string>> = {
  400: 'BadRequest',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'NotFound',
  405: 'MethodNotAllowed',
  409: 'Conflict',
  410: 'Expired',
  422: 'Invalid',
  429: 'TooManyRequests',
  500: 'InternalError',
  503: 'ServiceUnavailable',
  504: 'Timeout',
}

function reasonOfCode(code: number): string {
  return reasons[code] ?? 'Unknown'
}
