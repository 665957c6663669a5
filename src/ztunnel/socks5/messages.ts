// The messages of SOCKS version 5 that a client without authentication sends and gets (RFC 1928).
import type { SocketAddress } from '../model.ts'
import { ipFromBytes } from '../state/address.ts'

export type Socks5Target =
  | { readonly kind: 'address'; readonly address: SocketAddress }
  | { readonly kind: 'hostname'; readonly hostname: string; readonly port: number }

/** What the bytes so far say. `length`: how many of them the message takes; `incomplete`: more must come. */
export type Reading<T> =
  | { readonly kind: 'message'; readonly value: T; readonly length: number }
  | { readonly kind: 'incomplete' }
  | { readonly kind: 'violation'; readonly error: string }

/** Reply codes. */
export const replies = { succeeded: 0, generalFailure: 1, hostUnreachable: 4, commandNotSupported: 7 } as const

export const noAuthentication = Buffer.from([5, 0])
export const noAcceptableMethod = Buffer.from([5, 0xff])

const incomplete = { kind: 'incomplete' } as const
const violation = (error: string) => ({ kind: 'violation', error }) as const

/** The client's greeting; it must offer to go without authentication. */
export function readGreeting(bytes: Uint8Array): Reading<'no-authentication'> {
  const [version, count] = bytes
  if (version === undefined) return incomplete
  if (version !== 5) return violation(`unsupported version ${version}`)
  if (count === undefined || bytes.length < 2 + count) return incomplete
  if (!bytes.subarray(2, 2 + count).includes(0)) return violation('authentication is required by the client')
  return { kind: 'message', value: 'no-authentication', length: 2 + count }
}

/** The client's request; the one command is CONNECT. */
export function readRequest(bytes: Uint8Array): Reading<Socks5Target> {
  const [version, command, reserved, type, first] = bytes
  if (version !== undefined && version !== 5) return violation(`unsupported version ${version}`)
  if (command !== undefined && command !== 1) return violation(`unsupported command ${command}`)
  if (reserved !== undefined && reserved !== 0) return violation('the reserved byte is not zero')
  if (type === undefined) return incomplete
  switch (type) {
    case 1:
      return readTarget(bytes, 4, 4, toAddress)
    case 4:
      return readTarget(bytes, 4, 16, toAddress)
    case 3:
      return first === undefined ? incomplete : readTarget(bytes, 5, first, toHostname)
    default:
      return violation(`unsupported address type ${type}`)
  }
}

/** The answer to a request. The bound address is of no use to anybody and left at zero. */
export function encodeReply(code: number): Buffer {
  return Buffer.from([5, code, 0, 1, 0, 0, 0, 0, 0, 0])
}

function readTarget(
  bytes: Uint8Array,
  start: number,
  length: number,
  toTarget: (host: Uint8Array, port: number) => Socks5Target | undefined,
): Reading<Socks5Target> {
  const end = start + length + 2
  if (bytes.length < end) return incomplete
  const [high = 0, low = 0] = bytes.subarray(end - 2, end)
  const value = toTarget(bytes.subarray(start, end - 2), high * 256 + low)
  return value === undefined ? violation('not a valid destination') : { kind: 'message', value, length: end }
}

function toAddress(host: Uint8Array, port: number): Socks5Target | undefined {
  const ip = ipFromBytes(host)
  return ip === undefined ? undefined : { kind: 'address', address: { ip, port } }
}

function toHostname(host: Uint8Array, port: number): Socks5Target | undefined {
  const hostname = Buffer.from(host).toString('latin1')
  const labels = hostname.replace(/\.$/, '').split('.')
  const isName = hostname.length <= 253 && labels.every((label) => /^[A-Za-z0-9_-]{1,63}$/.test(label))
  return isName ? { kind: 'hostname', hostname, port } : undefined
}
