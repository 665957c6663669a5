// struct sockaddr as bytes.
import { isIPv4 } from 'node:net'
import ipaddr from 'ipaddr.js'
import { AF_INET, AF_INET6, AF_UNIX } from './constants.ts'
import { LinuxError } from './errors.ts'

export interface IpAddress {
  readonly ip: string
  readonly port: number
}

/** sockaddr_in or sockaddr_in6. An IPv4 address on an IPv6 socket is written in its mapped form. */
export function encodeIpAddress(family: 4 | 6, address: IpAddress): Uint8Array {
  if (family === 4 && isIPv4(address.ip)) return encodeIpv4(address)
  const parsed = ipaddr.parse(address.ip)
  if (family === 4) {
    const v4 = parsed.kind() === 'ipv4' ? parsed : ipaddr.process(address.ip)
    if (v4.kind() !== 'ipv4') throw new LinuxError('bind', 'EAFNOSUPPORT', `${address.ip} on an IPv4 socket`)
    const out = Buffer.alloc(16)
    out.writeUInt16LE(AF_INET, 0)
    out.writeUInt16BE(address.port, 2)
    out.set(v4.toByteArray(), 4)
    return out
  }
  const out = Buffer.alloc(28)
  out.writeUInt16LE(AF_INET6, 0)
  out.writeUInt16BE(address.port, 2)
  out.set((parsed instanceof ipaddr.IPv4 ? parsed.toIPv4MappedAddress() : parsed).toByteArray(), 8)
  return out
}

function encodeIpv4({ ip, port }: IpAddress): Uint8Array {
  const out = Buffer.alloc(16)
  out.writeUInt16LE(AF_INET, 0)
  out.writeUInt16BE(port, 2)
  out.set(ip.split('.').map(Number), 4)
  return out
}

/** The address in a sockaddr_in or sockaddr_in6; mapped addresses become IPv4. */
export function decodeIpAddress(bytes: Buffer): IpAddress {
  const port = bytes.readUInt16BE(2)
  const v6 = bytes.readUInt16LE(0) === AF_INET6
  if (!v6) return { ip: `${bytes[4]}.${bytes[5]}.${bytes[6]}.${bytes[7]}`, port }
  const ip = ipaddr.fromByteArray([...bytes.subarray(8, 24)])
  return { ip: ipaddr.process(ip.toString()).toString(), port }
}

/** sockaddr_un. A path that starts with NUL is an abstract name. */
export function encodeUnixAddress(path: string): Uint8Array {
  const name = Buffer.from(path)
  if (name.length > 107) throw new LinuxError('bind', 'ENAMETOOLONG', path)
  const out = Buffer.alloc(2 + name.length + (path.startsWith('\0') ? 0 : 1))
  out.writeUInt16LE(AF_UNIX, 0)
  out.set(name, 2)
  return out
}
