// Writes responses: objects, Status failures, warnings.
import { stringify } from 'yaml'
import { ApiError, internalError } from '../errors.ts'
import type { Exchange } from './exchange.ts'

export function headersOf(exchange: Exchange, contentType: string): Record<string, string | readonly string[]> {
  const headers: Record<string, string | readonly string[]> = {
    'content-type': contentType,
    'cache-control': 'no-cache, private',
  }
  if (exchange.warnings.length > 0) {
    headers.warning = [...new Set(exchange.warnings)].map((text) => `299 - ${quoted(text)}`)
  }
  return headers
}

function quoted(text: string): string {
  const printable = [...text].map((character) => (character >= ' ' && character <= '~' ? character : '?')).join('')
  return `"${printable.replace(/[\\"]/g, '\\$&')}"`
}

export function sendJson(exchange: Exchange, status: number, json: string): void {
  const { response } = exchange
  if (response.headersSent) return
  const bytes = Buffer.from(json)
  response.writeHead(status, { ...headersOf(exchange, 'application/json'), 'content-length': String(bytes.length) })
  response.end(exchange.method === 'HEAD' ? undefined : bytes)
}

export function sendObject(exchange: Exchange, status: number, value: unknown, format: 'json' | 'yaml' = 'json'): void {
  if (format === 'json') {
    sendJson(exchange, status, JSON.stringify(value))
    return
  }
  const { response } = exchange
  if (response.headersSent) return
  response.writeHead(status, headersOf(exchange, 'application/yaml'))
  response.end(stringify(value, { aliasDuplicateObjects: false }))
}

/** Answers with the failure's Status; one that is no ApiError is an internal error. */
export function sendFailure(exchange: Exchange, error: unknown): void {
  const failure = error instanceof ApiError ? error : internalError(error)
  const { response } = exchange
  if (response.headersSent) {
    // Too late for a Status: an incomplete response must not look complete.
    exchange.request.destroy()
    return
  }
  const bytes = Buffer.from(JSON.stringify(failure.toStatus()))
  const isUnread = !exchange.request.complete
  if (isUnread) exchange.request.resume()
  const retryAfter = failure.details?.retryAfterSeconds
  response.writeHead(failure.code, {
    ...headersOf(exchange, 'application/json'),
    'content-length': String(bytes.length),
    ...(retryAfter === undefined ? {} : { 'retry-after': String(retryAfter) }),
    // What is still coming of the request must not be taken for the next one.
    ...(isUnread && exchange.request.httpVersionMajor === 1 ? { connection: 'close' } : {}),
    ...(failure.code === 401 ? { 'www-authenticate': 'Bearer' } : {}),
  })
  response.end(bytes)
}
