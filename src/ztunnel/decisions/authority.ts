// The `:authority` of a CONNECT: an address or a host name, always with a port.
import type { SocketAddress } from '../model.ts'
import { parseSocketAddress } from '../state/address.ts'

export type Authority =
  | { readonly kind: 'address'; readonly address: SocketAddress }
  | { readonly kind: 'hostname'; readonly hostname: string; readonly port: number }

/** Undefined when it is neither `ip:port`, `[v6]:port` nor `host:port`. */
export function parseAuthority(text: string): Authority | undefined {
  const address = parseSocketAddress(text)
  if (address !== undefined) return { kind: 'address', address }
  const match = /^([A-Za-z0-9_*](?:[A-Za-z0-9_.*-]*[A-Za-z0-9_])?\.?):(\d{1,5})$/.exec(text)
  if (match?.[1] === undefined || /^[\d.]+$/.test(match[1])) return undefined
  const port = Number(match[2])
  return port > 65535 ? undefined : { kind: 'hostname', hostname: match[1].replace(/\.$/, ''), port }
}
