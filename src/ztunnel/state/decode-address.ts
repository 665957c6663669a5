// The Workload API message `Address` → the node proxy's model. A field that cannot be understood rejects the whole resource.
import { fromBinary } from '@bufbuild/protobuf'
import { workload as proto } from '../../proto/index.ts'
import type { GatewayAddress, NetworkAddress, Scope, Service, Workload } from '../model.ts'
import { cidrFromBytes, ipFromBytes } from './address.ts'
import { invalidResource, messageOf } from './errors.ts'
import { createInterner, type Interner } from './intern.ts'

export type DecodedAddress =
  | { readonly kind: 'workload'; readonly workload: Workload }
  | { readonly kind: 'service'; readonly service: Service }

/** Decodes one resource. Throws a StateError whose message is the reason told to the control plane. */
export function decodeAddress(body: Uint8Array, interner: Interner = createInterner()): DecodedAddress {
  const { type } = parse(body)
  switch (type.case) {
    case 'workload':
      return { kind: 'workload', workload: toWorkload(type.value, interner) }
    case 'service':
      return { kind: 'service', service: toService(type.value, interner) }
    case undefined:
      throw invalidResource('unknown address type')
  }
}

/** The canonical text of 4 or 16 bytes. Throws a StateError for any other length. */
export function decodeIp(bytes: Uint8Array): string {
  const ip = ipFromBytes(bytes)
  if (ip === undefined) throw invalidResource(`failed to parse address, had ${bytes.length} bytes`)
  return ip
}

/** A port number. Throws a StateError when it is above 65535. */
export function decodePort(port: number): number {
  if (port > 65535) throw invalidResource(`invalid port: ${port}`)
  return port
}

export function unknownEnum(what: string, value: number): never {
  throw invalidResource(`unknown enum: ${what} ${value}`)
}

function parse(body: Uint8Array): proto.Address {
  try {
    return fromBinary(proto.AddressSchema, body)
  } catch (error) {
    throw invalidResource(`malformed message: ${messageOf(error)}`)
  }
}

const noLocality = { region: '', zone: '', subzone: '' }

function toWorkload(message: proto.Workload, interner: Interner): Workload {
  const text = (value: string, otherwise = ''): string => interner.text(value === '' ? otherwise : value)
  const { locality, applicationTunnel } = message
  return {
    uid: message.uid,
    name: message.name,
    namespace: text(message.namespace),
    addresses: message.addresses.map(decodeIp),
    hostname: message.hostname,
    network: text(message.network),
    networkMode: toNetworkMode(message.networkMode),
    protocol: toProtocol(message.tunnelProtocol),
    nativeTunnel: message.nativeTunnel,
    trustDomain: text(message.trustDomain, 'cluster.local'),
    serviceAccount: text(message.serviceAccount, 'default'),
    node: text(message.node),
    clusterId: text(message.clusterId, 'Kubernetes'),
    ...(message.waypoint === undefined ? {} : { waypoint: toGateway(message.waypoint) }),
    ...(message.networkGateway === undefined ? {} : { networkGateway: toGateway(message.networkGateway) }),
    ...(applicationTunnel === undefined ? {} : { applicationTunnel: toTunnel(applicationTunnel) }),
    canonicalName: text(message.canonicalName),
    canonicalRevision: text(message.canonicalRevision),
    workloadName: text(message.workloadName),
    workloadType: toWorkloadType(message.workloadType),
    locality:
      locality === undefined
        ? noLocality
        : { region: text(locality.region), zone: text(locality.zone), subzone: text(locality.subzone) },
    capacity: message.capacity ?? 1,
    status: toStatus(message.status),
    authorizationPolicies: message.authorizationPolicies.map((key) => text(key)),
    services: new Map(
      Object.entries(message.services).map(([key, list]) => {
        if (!key.includes('/')) throw invalidResource(`failed to parse namespaced hostname: ${key}`)
        return [text(key), interner.ports(list.ports.map(toPort))]
      }),
    ),
  }
}

function toService(message: proto.Service, interner: Interner): Service {
  const vips: NetworkAddress[] = []
  const cidrVips: { network: string; cidr: string }[] = []
  for (const { network, address, length } of message.addresses) {
    const ip = decodeIp(address)
    if (length === undefined || length === address.length * 8) {
      vips.push({ network: interner.text(network), ip })
      continue
    }
    const cidr = cidrFromBytes(address, length)
    if (cidr === undefined) throw invalidResource(`invalid cidr: ${ip}/${length}`)
    cidrVips.push({ network: interner.text(network), cidr: cidr.text })
  }
  const { loadBalancing } = message
  const ipFamilies = toIpFamilies(message.ipFamilies)
  return {
    name: message.name,
    namespace: interner.text(message.namespace),
    hostname: message.hostname,
    vips,
    cidrVips,
    ports: interner.ports(message.ports.map(toPort)),
    subjectAltNames: message.subjectAltNames,
    ...(message.waypoint === undefined ? {} : { waypoint: toGateway(message.waypoint) }),
    weightedWaypoints: message.weightedWaypoints.map(({ destination, weight }) => {
      if (destination === undefined) throw invalidResource('nonempty gateway address is missing address')
      return { destination: toGateway(destination), weight }
    }),
    ...(loadBalancing === undefined
      ? {}
      : {
          loadBalancer: {
            mode: toMode(loadBalancing.mode),
            routingPreferences: loadBalancing.routingPreference.map(toScope),
            healthPolicy: toHealthPolicy(loadBalancing.healthPolicy),
          },
        }),
    ...(ipFamilies === undefined ? {} : { ipFamilies }),
    canonical: message.canonical,
    visibility: message.visibility === proto.Service_Visibility.NAMESPACE ? 'Namespace' : 'Public',
  }
}

const toPort = (port: proto.Port): readonly [number, number] => [
  decodePort(port.servicePort),
  decodePort(port.targetPort),
]

function toGateway(message: proto.GatewayAddress): GatewayAddress {
  const { destination } = message
  // Zero means the control plane left it to the default.
  const hbonePort = decodePort(message.hboneMtlsPort) || 15008
  switch (destination.case) {
    case 'hostname': {
      const { namespace, hostname } = destination.value
      return { destination: { kind: 'hostname', hostname: { namespace, hostname } }, hbonePort }
    }
    case 'address': {
      const address = { network: destination.value.network, ip: decodeIp(destination.value.address) }
      return { destination: { kind: 'address', address }, hbonePort }
    }
    case undefined:
      throw invalidResource('nonempty gateway address is missing address')
  }
}

function toTunnel(message: proto.ApplicationTunnel): NonNullable<Workload['applicationTunnel']> {
  const port = decodePort(message.port)
  const given = port === 0 ? {} : { port }
  switch (message.protocol) {
    case proto.ApplicationTunnel_Protocol.NONE:
      return { protocol: 'NONE', ...given }
    case proto.ApplicationTunnel_Protocol.PROXY:
      return { protocol: 'PROXY', ...given }
    default:
      return unknownEnum('application tunnel protocol', message.protocol)
  }
}

function toProtocol(value: proto.TunnelProtocol): Workload['protocol'] {
  switch (value) {
    case proto.TunnelProtocol.NONE:
      return 'TCP'
    case proto.TunnelProtocol.HBONE:
      return 'HBONE'
    case proto.TunnelProtocol.LEGACY_ISTIO_MTLS:
      throw invalidResource('unknown enum: unsupported tunnel protocol: legacy istio mtls')
    default:
      return unknownEnum('tunnel protocol', value)
  }
}

function toNetworkMode(value: proto.NetworkMode): Workload['networkMode'] {
  switch (value) {
    case proto.NetworkMode.STANDARD:
      return 'Standard'
    case proto.NetworkMode.HOST_NETWORK:
      return 'HostNetwork'
    default:
      return unknownEnum('network mode', value)
  }
}

function toStatus(value: proto.WorkloadStatus): Workload['status'] {
  switch (value) {
    case proto.WorkloadStatus.HEALTHY:
      return 'Healthy'
    case proto.WorkloadStatus.UNHEALTHY:
      return 'Unhealthy'
    default:
      return unknownEnum('workload status', value)
  }
}

function toWorkloadType(value: proto.WorkloadType): string {
  switch (value) {
    case proto.WorkloadType.DEPLOYMENT:
      return 'deployment'
    case proto.WorkloadType.CRONJOB:
      return 'cronjob'
    case proto.WorkloadType.POD:
      return 'pod'
    case proto.WorkloadType.JOB:
      return 'job'
    default:
      return unknownEnum('workload type', value)
  }
}

function toMode(value: proto.LoadBalancing_Mode): NonNullable<Service['loadBalancer']>['mode'] {
  switch (value) {
    case proto.LoadBalancing_Mode.UNSPECIFIED_MODE:
      return 'Standard'
    case proto.LoadBalancing_Mode.STRICT:
      return 'Strict'
    case proto.LoadBalancing_Mode.FAILOVER:
      return 'Failover'
    case proto.LoadBalancing_Mode.PASSTHROUGH:
      return 'Passthrough'
    default:
      return unknownEnum('load balancing mode', value)
  }
}

function toHealthPolicy(value: proto.LoadBalancing_HealthPolicy): NonNullable<Service['loadBalancer']>['healthPolicy'] {
  switch (value) {
    case proto.LoadBalancing_HealthPolicy.ONLY_HEALTHY:
      return 'OnlyHealthy'
    case proto.LoadBalancing_HealthPolicy.ALLOW_ALL:
      return 'AllowAll'
    default:
      return unknownEnum('health policy', value)
  }
}

function toScope(value: proto.LoadBalancing_Scope): Scope {
  switch (value) {
    case proto.LoadBalancing_Scope.REGION:
      return 'Region'
    case proto.LoadBalancing_Scope.ZONE:
      return 'Zone'
    case proto.LoadBalancing_Scope.SUBZONE:
      return 'Subzone'
    case proto.LoadBalancing_Scope.NODE:
      return 'Node'
    case proto.LoadBalancing_Scope.CLUSTER:
      return 'Cluster'
    case proto.LoadBalancing_Scope.NETWORK:
      return 'Network'
    default:
      return unknownEnum('routing preference', value)
  }
}

function toIpFamilies(value: proto.IPFamilies): Service['ipFamilies'] {
  switch (value) {
    case proto.IPFamilies.AUTOMATIC:
      return undefined
    case proto.IPFamilies.IPV4_ONLY:
      return 'IPv4'
    case proto.IPFamilies.IPV6_ONLY:
      return 'IPv6'
    case proto.IPFamilies.DUAL:
      return 'Dual'
    default:
      return unknownEnum('ip families', value)
  }
}
