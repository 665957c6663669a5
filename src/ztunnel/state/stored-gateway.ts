// A gateway address as part of what is stored.
import type { GatewayAddress } from '../model.ts'

export type StoredGateway = readonly [kind: 'a' | 'h', first: string, second: string, port: number] | 0

export function storeGateway(gateway: GatewayAddress | undefined): StoredGateway {
  if (gateway === undefined) return 0
  const { destination, hbonePort } = gateway
  return destination.kind === 'address'
    ? ['a', destination.address.network, destination.address.ip, hbonePort]
    : ['h', destination.hostname.namespace, destination.hostname.hostname, hbonePort]
}

export function loadGateway(stored: StoredGateway): GatewayAddress | undefined {
  if (stored === 0) return undefined
  const [kind, first, second, hbonePort] = stored
  return kind === 'a'
    ? { destination: { kind: 'address', address: { network: first, ip: second } }, hbonePort }
    : { destination: { kind: 'hostname', hostname: { namespace: first, hostname: second } }, hbonePort }
}
