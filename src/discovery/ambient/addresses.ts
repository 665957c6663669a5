// IP addresses and prefixes as bytes and as canonical text.
import ipaddr from 'ipaddr.js'

export interface Prefix {
  readonly address: Uint8Array
  readonly length: number
}

/** The 4 or 16 bytes of an address (IPv4-mapped IPv6 as IPv4); undefined where the text is none. */
export function parseIp(text: string): Uint8Array | undefined {
  if (!ipaddr.IPv6.isValid(text) && !ipaddr.IPv4.isValidFourPartDecimal(text)) return undefined
  if (text.includes('%')) return undefined
  return Uint8Array.from(ipaddr.process(text).toByteArray())
}

/** An address (length 32 or 128) or a CIDR, as written: bits after the prefix are kept. */
export function parsePrefix(text: string): Prefix | undefined {
  const slash = text.indexOf('/')
  const address = parseIp(slash < 0 ? text : text.slice(0, slash))
  if (address === undefined) return undefined
  const bits = address.length * 8
  if (slash < 0) return { address, length: bits }
  const lengthText = text.slice(slash + 1)
  if (!/^\d{1,3}$/.test(lengthText)) return undefined
  const mapped = address.length === 4 && text.slice(0, slash).includes(':')
  const length = Number(lengthText) - (mapped ? 96 : 0)
  return length >= 0 && length <= bits ? { address, length } : undefined
}

/** The prefix with the bits after it cleared. */
export function masked({ address, length }: Prefix): Uint8Array {
  return address.map((byte, at) => byte & (0xff00 >> Math.max(0, Math.min(8, length - at * 8))))
}

/** RFC 5952 text of 4 or 16 bytes. */
export function ipText(address: Uint8Array): string {
  const parsed = ipaddr.fromByteArray([...address])
  return parsed.kind() === 'ipv6' ? (parsed as ipaddr.IPv6).toRFC5952String() : parsed.toString()
}

/** The key an address is asked for by. */
export function addressKey(network: string, address: Uint8Array, length?: number): string {
  return `${network}/${ipText(address)}${length === undefined ? '' : `/${length}`}`
}
