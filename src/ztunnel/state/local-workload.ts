// A workload of a local file.
import type { GatewayAddress, Workload } from '../model.ts'
import { canonicalIp } from './address.ts'
import {
  type At,
  fail,
  readBoolean,
  readChoice,
  readIp,
  readList,
  readMap,
  readNumber,
  readObject,
  readPort,
  readPorts,
  readText,
} from './local-read.ts'

const optional = [
  'uid',
  'name',
  'serviceAccount',
  'trustDomain',
  'network',
  'node',
  'hostname',
  'workloadName',
  'workloadType',
  'canonicalName',
  'canonicalRevision',
  'clusterId',
  'protocol',
  'networkMode',
  'status',
  'capacity',
  'waypoint',
  'networkGateway',
  'applicationTunnel',
  'nativeTunnel',
  'authorizationPolicies',
  'locality',
]

export function readWorkload(at: At): Workload {
  const fields = readObject(at, ['workloadIps', 'services', 'namespace'], optional)
  const text = (key: string): string => readText(fields.get(key))
  const waypoint = fields.get('waypoint')
  const networkGateway = fields.get('networkGateway')
  const tunnel = fields.get('applicationTunnel')
  const capacity = fields.get('capacity')
  const services = fields.get('services')
  return {
    uid: text('uid'),
    name: text('name'),
    namespace: text('namespace'),
    addresses: readList(fields.get('workloadIps'), readIp),
    hostname: text('hostname'),
    network: text('network'),
    networkMode: readChoice(fields.get('networkMode'), ['Standard', 'HostNetwork'], 'Standard'),
    protocol: readChoice(fields.get('protocol'), ['TCP', 'HBONE'], 'TCP'),
    nativeTunnel: readBoolean(fields.get('nativeTunnel')),
    trustDomain: text('trustDomain'),
    serviceAccount: text('serviceAccount'),
    node: text('node'),
    clusterId: text('clusterId'),
    ...(waypoint === undefined ? {} : { waypoint: readGateway(waypoint) }),
    ...(networkGateway === undefined ? {} : { networkGateway: readGateway(networkGateway) }),
    ...(tunnel === undefined ? {} : { applicationTunnel: readTunnel(tunnel) }),
    canonicalName: text('canonicalName'),
    canonicalRevision: text('canonicalRevision'),
    workloadName: text('workloadName'),
    workloadType: text('workloadType'),
    locality: readLocality(fields.get('locality')),
    capacity: capacity === undefined ? 1 : readNumber(capacity, 0xffffffff),
    status: readChoice(fields.get('status'), ['Healthy', 'Unhealthy'], 'Healthy'),
    authorizationPolicies: readList(fields.get('authorizationPolicies'), readText),
    services: new Map(
      (services === undefined ? [] : [...readMap(services)]).map(([key, ports]) => {
        if (!key.includes('/')) fail({ value: key, path: ports.path }, '<namespace>/<hostname>')
        return [key, readPorts(ports)] as const
      }),
    ),
  }
}

/** `<network>/<IP>` is tried first, then `<namespace>/<hostname>`. */
export function readGateway(at: At): GatewayAddress {
  const fields = readObject(at, ['destination', 'hboneMtlsPort'], [])
  const destination = readText(fields.get('destination'))
  const slash = destination.indexOf('/')
  if (slash < 0) return fail(at, 'a destination <network>/<IP> or <namespace>/<hostname>')
  const port = fields.get('hboneMtlsPort')
  const hbonePort = port === undefined ? 0 : readPort(port)
  const [first, rest] = [destination.slice(0, slash), destination.slice(slash + 1)]
  const ip = canonicalIp(rest)
  if (ip !== undefined) return { destination: { kind: 'address', address: { network: first, ip } }, hbonePort }
  return { destination: { kind: 'hostname', hostname: { namespace: first, hostname: rest } }, hbonePort }
}

function readTunnel(at: At): NonNullable<Workload['applicationTunnel']> {
  const fields = readObject(at, ['protocol'], ['port'])
  const port = fields.get('port')
  const protocol = readChoice(fields.get('protocol'), ['NONE', 'PROXY'], 'NONE')
  return { protocol, ...(port === undefined ? {} : { port: readPort(port) }) }
}

function readLocality(at: At | undefined): Workload['locality'] {
  if (at === undefined) return { region: '', zone: '', subzone: '' }
  const fields = readObject(at, [], ['region', 'zone', 'subzone'])
  const text = (key: string): string => readText(fields.get(key))
  return { region: text('region'), zone: text('zone'), subzone: text('subzone') }
}
