// What a header block must be like (RFC 9113, section 8), beyond that it can be decoded.
import { errorCode, flag, Http2ConnectionError } from './constants.ts'
import type { Frame } from './frame-reader.ts'
import type { HeaderField } from './hpack.ts'

/** A HEADERS frame's part of the header block, without padding and priority. Throws an Http2ConnectionError. */
export function headerFragment({ flags, payload }: Frame): Buffer {
  let at = 0
  let padding = 0
  if ((flags & flag.padded) !== 0) {
    padding = payload[0] ?? 0
    at += 1
  }
  if ((flags & flag.priority) !== 0) at += 5
  if (at + padding > payload.length)
    throw new Http2ConnectionError(errorCode.protocolError, 'HEADERS shorter than its padding')
  return payload.subarray(at, payload.length - padding)
}

/** What is about one connection of HTTP/1: RFC 9113, 8.2.2. */
const connectionFields = new Set(['connection', 'proxy-connection', 'keep-alive', 'transfer-encoding', 'upgrade'])

/** RFC 9113, 8.2: lower-case names, no control characters in values, pseudo fields first, nothing that is about the connection. */
export function isWellFormed(fields: readonly HeaderField[]): boolean {
  let regular = false
  return fields.every(([name, value]) => {
    if (name.startsWith(':')) {
      if (regular) return false
    } else {
      regular = true
    }
    if (connectionFields.has(name) || (name === 'te' && value !== 'trailers')) return false
    return /^:?[!#$%&'*+\-.^_`|~0-9a-z]+$/.test(name) && !/[\0\r\n]/.test(value)
  })
}

/** A CONNECT has a method and an authority only; everything else has at least a method, a scheme and a path. */
export function isRequest(fields: readonly HeaderField[]): boolean {
  const pseudo = fields.flatMap(([name]) => (name.startsWith(':') ? [name] : []))
  if (new Set(pseudo).size !== pseudo.length) return false
  const method = fields.find(([name]) => name === ':method')?.[1]
  if (method === undefined) return false
  const expected = method === 'CONNECT' ? [':method', ':authority'] : [':method', ':scheme', ':path']
  const allowed = method === 'CONNECT' ? expected : [...expected, ':authority']
  return expected.every((name) => pseudo.includes(name)) && pseudo.every((name) => allowed.includes(name))
}
