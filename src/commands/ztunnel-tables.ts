// The tables of what a node proxy knows.
import { columns } from './table.ts'
import {
  type DumpedCertificate,
  type DumpedCertificates,
  type DumpedConnection,
  type DumpedGateway,
  type DumpedPod,
  type DumpedPolicy,
  type DumpedService,
  type DumpedWorkload,
  listOf,
  type ZtunnelDump,
} from './ztunnel-dump.ts'

export function workloadTable(workloads: readonly DumpedWorkload[], dump: ZtunnelDump): string {
  const services = listOf(dump.services)
  const rows = sortedBy(workloads, ({ namespace, name, node = '' }) => `${namespace}.${name} ${node}`).map((one) => [
    one.namespace,
    one.name,
    (one.workloadIps ?? []).join(',') || (one.hostname ?? ''),
    one.node ?? '',
    waypointName(one.waypoint, services),
    one.protocol ?? '',
  ])
  return columns([['NAMESPACE', 'POD NAME', 'ADDRESS', 'NODE', 'WAYPOINT', 'PROTOCOL'], ...rows])
}

export function serviceTable(services: readonly DumpedService[], dump: ZtunnelDump): string {
  const all = listOf(dump.services)
  const byUid = new Map(listOf(dump.workloads).map((workload) => [workload.uid ?? '', workload]))
  const rows = sortedBy(services, (one) => `${one.namespace} ${one.name} ${one.hostname}`).map((one) => {
    const endpoints = listOf(one.endpoints)
    const healthy = endpoints.filter(({ workloadUid = '' }) => byUid.get(workloadUid)?.status === 'Healthy')
    const vips = (one.vips ?? []).map((vip) => vip.slice(vip.indexOf('/') + 1)).join(',')
    return [one.namespace, one.name, vips, waypointName(one.waypoint, all), `${healthy.length}/${endpoints.length}`]
  })
  return columns([['NAMESPACE', 'SERVICE NAME', 'SERVICE VIP', 'WAYPOINT', 'ENDPOINTS'], ...rows])
}

export function policyTable(policies: readonly DumpedPolicy[]): string {
  const rows = sortedBy(policies, ({ namespace, name }) => `${namespace} ${name}`).map((one) => [
    one.namespace,
    one.name,
    one.action ?? '',
    one.scope ?? '',
  ])
  return columns([['NAMESPACE', 'POLICY NAME', 'ACTION', 'SCOPE'], ...rows])
}

export function certificateTable(certificates: readonly DumpedCertificates[], now: Date): string {
  const rows = certificates.flatMap((one) => certificateRows(one, now))
  const head = ['CERTIFICATE NAME', 'TYPE', 'STATUS', 'VALID CERT', 'SERIAL NUMBER', 'NOT AFTER', 'NOT BEFORE']
  return columns([head, ...rows])
}

function certificateRows({ identity, state = '', certChain = [], rootCerts = [] }: DumpedCertificates, now: Date) {
  const status = state.includes('Unavailable') ? 'Unavailable' : state
  if (certChain.length === 0) return [[identity, 'NA', status, 'false', 'NA', 'NA', 'NA']]
  // Where roots are not told apart the last of the chain is one.
  const chain = rootCerts.length === 0 && certChain.length > 1 ? certChain.slice(0, -1) : certChain
  const roots = rootCerts.length === 0 ? certChain.slice(chain.length) : rootCerts
  const row = (certificate: DumpedCertificate, type: string): string[] => [
    identity,
    type,
    status,
    String(isValid(certificate, now)),
    serial(certificate.serialNumber),
    certificate.expirationTime ?? 'NA',
    certificate.validFrom ?? 'NA',
  ]
  return [
    ...chain.map((certificate, index) => row(certificate, index === 0 ? 'Leaf' : 'Intermediate')),
    ...roots.map((certificate) => row(certificate, 'Root')),
  ]
}

function isValid({ validFrom = '', expirationTime = '' }: DumpedCertificate, now: Date): boolean {
  return Date.parse(validFrom) <= now.getTime() && now.getTime() < Date.parse(expirationTime)
}

/** The decimal number of the dump as people compare it elsewhere: in hexadecimal. */
function serial(text = ''): string {
  return /^\d+$/.test(text) ? BigInt(text).toString(16) : text
}

export interface ConnectionFilter {
  readonly direction?: 'inbound' | 'outbound'
  /** Addresses as they are, without names. */
  readonly raw: boolean
}

export function connectionTable(pods: readonly DumpedPod[], dump: ZtunnelDump, filter: ConnectionFilter): string {
  const named = filter.raw ? (address: string) => address : addressNames(dump)
  const rows = sortedBy(pods, ({ info }) => `${info?.namespace ?? ''} ${info?.name ?? ''}`).flatMap((pod) => {
    const { inbound = [], outbound = [] } = pod.connections ?? {}
    const workload = `${pod.info?.name ?? ''}.${pod.info?.namespace ?? ''}`
    const row = (direction: string, local: string, remote: string, target: string, one: DumpedConnection): string[] => [
      workload,
      direction,
      named(local),
      named(remote),
      named(target),
      one.protocol ?? '',
    ]
    return [
      ...(filter.direction === 'outbound' ? [] : inbound).map((one) =>
        row('Inbound', one.actualDst ?? '', one.src ?? '', one.originalDst ?? '', one),
      ),
      ...(filter.direction === 'inbound' ? [] : outbound).map((one) =>
        row('Outbound', one.src ?? '', one.actualDst ?? '', one.originalDst ?? '', one),
      ),
    ]
  })
  return columns([['WORKLOAD', 'DIRECTION', 'LOCAL', 'REMOTE', 'REMOTE TARGET', 'PROTOCOL'], ...rows])
}

/** The name of what an `ip:port` is of, with the port kept. */
function addressNames(dump: ZtunnelDump): (address: string) => string {
  const names = new Map<string, string>()
  for (const { name, namespace, workloadIps: [ip] = [] } of listOf(dump.workloads)) {
    if (ip !== undefined) names.set(ip, `${name}.${namespace}`)
  }
  for (const { hostname, vips: [vip = ''] = [] } of listOf(dump.services)) {
    names.set(vip.slice(vip.indexOf('/') + 1), hostname)
  }
  return (address) => {
    const colon = address.lastIndexOf(':')
    const ip = address.slice(0, Math.max(colon, 0)).replace(/^\[|\]$/g, '')
    const name = ip === '' ? undefined : names.get(ip)
    return name === undefined ? address : `${name}${address.slice(colon)}`
  }
}

function waypointName(waypoint: DumpedGateway | null | undefined, services: readonly DumpedService[]): string {
  const destination = waypoint?.destination
  if (destination === undefined || destination === '') return 'None'
  const service = services.find(
    ({ namespace, hostname, vips = [] }) => `${namespace}/${hostname}` === destination || vips.includes(destination),
  )
  return service?.name ?? 'NA'
}

function sortedBy<T>(items: readonly T[], key: (item: T) => string): readonly T[] {
  return [...items].sort((a, b) => (key(a) < key(b) ? -1 : 1))
}
