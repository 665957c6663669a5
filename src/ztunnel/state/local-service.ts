// A service of a local file.
import type { FixedEndpoint, NetworkAddress, Scope, Service } from '../model.ts'
import { canonicalIp, parseCidr } from './address.ts'
import {
  type At,
  fail,
  readBoolean,
  readChoice,
  readList,
  readMap,
  readNumber,
  readObject,
  readPorts,
  readText,
} from './local-read.ts'
import { readGateway } from './local-workload.ts'

const optional = [
  'cidrVips',
  'endpoints',
  'subjectAltNames',
  'waypoint',
  'weightedWaypoints',
  'loadBalancer',
  'ipFamilies',
  'canonical',
  'visibility',
]
const scopes: readonly Scope[] = ['Region', 'Zone', 'Subzone', 'Node', 'Cluster', 'Network']

export function readService(at: At): Service {
  const fields = readObject(at, ['name', 'namespace', 'hostname', 'vips', 'ports'], optional)
  const waypoint = fields.get('waypoint')
  const loadBalancer = fields.get('loadBalancer')
  const ipFamilies = fields.get('ipFamilies')
  const endpoints = fields.get('endpoints')
  const fixed = endpoints === undefined ? [] : [...readMap(endpoints)].map(([, one]) => readEndpoint(one))
  return {
    name: readText(fields.get('name')),
    namespace: readText(fields.get('namespace')),
    hostname: readText(fields.get('hostname')),
    vips: readList(fields.get('vips'), readVip),
    cidrVips: readList(fields.get('cidrVips'), readCidrVip),
    ports: readPorts(fields.get('ports')),
    subjectAltNames: readList(fields.get('subjectAltNames'), readText),
    ...(waypoint === undefined ? {} : { waypoint: readGateway(waypoint) }),
    weightedWaypoints: readList(fields.get('weightedWaypoints'), readWeightedWaypoint),
    ...(loadBalancer === undefined ? {} : { loadBalancer: readLoadBalancer(loadBalancer) }),
    ...(ipFamilies === undefined
      ? {}
      : { ipFamilies: readChoice<'Dual' | 'IPv4' | 'IPv6'>(ipFamilies, ['Dual', 'IPv4', 'IPv6'], 'Dual') }),
    canonical: readBoolean(fields.get('canonical')),
    visibility: readChoice(fields.get('visibility'), ['Public', 'Namespace'], 'Public'),
    ...(fixed.length === 0 ? {} : { fixedEndpoints: new Map(fixed.map((one) => [one.workloadUid, one])) }),
  }
}

function readVip(at: At): NetworkAddress {
  const text = readText(at)
  const slash = text.indexOf('/')
  const ip = slash < 0 ? undefined : canonicalIp(text.slice(slash + 1))
  return ip === undefined ? fail(at, '<network>/<IP>') : { network: text.slice(0, slash), ip }
}

function readCidrVip(at: At): Service['cidrVips'][number] {
  const fields = readObject(at, ['network', 'cidr'], [])
  const cidr = parseCidr(readText(fields.get('cidr'))) ?? fail(at, 'a cidr <IP>/<length>')
  return { network: readText(fields.get('network')), cidr: cidr.text }
}

function readEndpoint(at: At): FixedEndpoint {
  const fields = readObject(at, ['workloadUid', 'port'], ['status'])
  return {
    workloadUid: readText(fields.get('workloadUid')),
    ports: readPorts(fields.get('port')),
    status: readChoice(fields.get('status'), ['Healthy', 'Unhealthy'], 'Healthy'),
  }
}

function readWeightedWaypoint(at: At): Service['weightedWaypoints'][number] {
  const fields = readObject(at, ['destination', 'weight'], [])
  const [destination, weight] = [fields.get('destination'), fields.get('weight')]
  if (destination === undefined || weight === undefined) return fail(at, 'a destination and a weight')
  return { destination: readGateway(destination), weight: readNumber(weight, 0xffffffff) }
}

function readLoadBalancer(at: At): NonNullable<Service['loadBalancer']> {
  const fields = readObject(at, ['mode', 'routingPreferences', 'healthPolicy'], [])
  return {
    mode: readChoice(fields.get('mode'), ['Standard', 'Strict', 'Failover', 'Passthrough'], 'Standard'),
    routingPreferences: readList(fields.get('routingPreferences'), (one) => readChoice(one, scopes, 'Network')),
    healthPolicy: readChoice(fields.get('healthPolicy'), ['OnlyHealthy', 'AllowAll'], 'OnlyHealthy'),
  }
}
