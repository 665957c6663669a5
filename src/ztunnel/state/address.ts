// IP addresses, address blocks and `ip:port` texts. Addresses are kept as canonical text; IPv4-mapped IPv6 becomes IPv4.
import { isIP, isIPv4 } from 'node:net'
import ipaddr from 'ipaddr.js'
import type { Cidr, SocketAddress } from '../model.ts'

/** The canonical text of an address, or undefined when it is none. */
export function canonicalIp(text: string): string | undefined {
  const kind = isIP(text)
  if (kind === 4) return text
  if (kind !== 6 || text.includes('%')) return undefined
  return ipFromBytes(Uint8Array.from(ipaddr.IPv6.parse(text).toByteArray()))
}

/** The canonical text of 4 or 16 bytes in network order, or undefined for any other length. */
export function ipFromBytes(bytes: Uint8Array): string | undefined {
  if (bytes.length === 4) return bytes.join('.')
  if (bytes.length !== 16) return undefined
  const address = new ipaddr.IPv6([...bytes])
  return address.isIPv4MappedAddress() ? address.toIPv4Address().toString() : address.toRFC5952String()
}

/** The 4 or 16 bytes of a canonical address. */
export function ipToBytes(ip: string): Uint8Array {
  return Uint8Array.from(ipaddr.parse(ip).toByteArray())
}

export const ipFamily = (ip: string): 4 | 6 => (isIPv4(ip) ? 4 : 6)

export function isLoopback(ip: string): boolean {
  return isIPv4(ip) ? ip.startsWith('127.') : ip === '::1'
}

/** The bits of an address as one number, to compare with address blocks. */
export interface IpBits {
  readonly family: 4 | 6
  readonly value: bigint
}

export function ipBits(ip: string): IpBits {
  const bytes = ipToBytes(ip)
  let value = 0n
  for (const byte of bytes) value = (value << 8n) | BigInt(byte)
  return { family: bytes.length === 4 ? 4 : 6, value }
}

/** Reads `address/length`; undefined when either part is wrong. */
export function parseCidr(text: string): Cidr | undefined {
  const slash = text.lastIndexOf('/')
  if (slash < 0 || !/^\d{1,3}$/.test(text.slice(slash + 1))) return undefined
  const address = text.slice(0, slash)
  if (isIP(address) === 0 || address.includes('%')) return undefined
  return cidrFromBytes(ipToBytes(address), Number(text.slice(slash + 1)))
}

/** The block of a 4- or 16-byte address with a prefix length; undefined when the length is too long for the family. */
export function cidrFromBytes(bytes: Uint8Array, length: number): Cidr | undefined {
  const bits = bytes.length * 8
  if ((bits !== 32 && bits !== 128) || !Number.isInteger(length) || length < 0 || length > bits) return undefined
  const mapped = bits === 128 && length >= 96 && isMapped(bytes)
  const address = mapped ? bytes.subarray(12) : bytes
  const realLength = mapped ? length - 96 : length
  const family = address.length === 4 ? 4 : 6
  let value = 0n
  for (const byte of address) value = (value << 8n) | BigInt(byte)
  const shift = BigInt(address.length * 8 - realLength)
  return { text: `${blockAddress(address)}/${realLength}`, family, length: realLength, shift, prefix: value >> shift }
}

/** In the family of the block: one that is wider than the IPv4-mapped addresses stays IPv6, whatever address it is written with. */
function blockAddress(bytes: Uint8Array): string {
  return bytes.length === 4 ? bytes.join('.') : new ipaddr.IPv6([...bytes]).toRFC5952String()
}

export function cidrContains(cidr: Cidr, bits: IpBits): boolean {
  return cidr.family === bits.family && bits.value >> cidr.shift === cidr.prefix
}

/** `1.2.3.4:80` or `[fd00::1]:80`. */
export function formatAddress(address: SocketAddress): string {
  return isIPv4(address.ip) ? `${address.ip}:${address.port}` : `[${address.ip}]:${address.port}`
}

/** Reads `1.2.3.4:80` or `[fd00::1]:80`. */
export function parseSocketAddress(text: string): SocketAddress | undefined {
  const match = /^(?:\[([^\]]+)\]|([^:[\]]+)):(\d{1,5})$/.exec(text)
  const host = match?.[1] ?? match?.[2]
  const port = Number(match?.[3])
  if (host === undefined || port > 65535) return undefined
  if ((match?.[1] === undefined) !== isIPv4(host)) return undefined
  const ip = canonicalIp(host)
  return ip === undefined ? undefined : { ip, port }
}

function isMapped(bytes: Uint8Array): boolean {
  return bytes.subarray(0, 10).every((byte) => byte === 0) && bytes[10] === 0xff && bytes[11] === 0xff
}
