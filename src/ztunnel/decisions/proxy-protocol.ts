// The PROXY protocol version 2 header that an application tunnel starts with.
// https://www.haproxy.org/download/1.8/doc/proxy-protocol.txt, section 2.2
import type { SocketAddress } from '../model.ts'
import { ipToBytes } from '../state/address.ts'

const signature = Uint8Array.of(0x0d, 0x0a, 0x0d, 0x0a, 0x00, 0x0d, 0x0a, 0x51, 0x55, 0x49, 0x54, 0x0a)
const peerIdentityType = 0xd0

export interface ProxyHeader {
  readonly source: SocketAddress
  readonly destination: SocketAddress
  /** SPIFFE id of the verified peer. */
  readonly peerIdentity?: string
}

/** All bytes to write before the payload. Mixed address families are announced as unspecified, without addresses. */
export function encodeProxyHeader(header: ProxyHeader): Buffer {
  const source = ipToBytes(header.source.ip)
  const destination = ipToBytes(header.destination.ip)
  const sameFamily = source.length === destination.length
  const family = !sameFamily ? 0x00 : source.length === 4 ? 0x11 : 0x21
  const addresses = sameFamily
    ? Buffer.concat([source, destination, uint16(header.source.port), uint16(header.destination.port)])
    : Buffer.alloc(0)
  const identity = Buffer.from(header.peerIdentity ?? '')
  const tlv =
    header.peerIdentity === undefined
      ? identity
      : Buffer.concat([Uint8Array.of(peerIdentityType), uint16(identity.length), identity])
  const length = uint16(addresses.length + tlv.length)
  return Buffer.concat([signature, Uint8Array.of(0x21, family), length, addresses, tlv])
}

function uint16(value: number): Buffer {
  const bytes = Buffer.alloc(2)
  bytes.writeUInt16BE(value)
  return bytes
}
