// Meshes of any size for the benchmark of the node proxy's state, as the control plane sends them.
import { create, toBinary } from '@bufbuild/protobuf'
import { workload as proto } from '../../src/proto/index.ts'
import type { Policy, Service, Workload } from '../../src/ztunnel/model.ts'
import { addressTypeUrl, ipToBytes } from '../../src/ztunnel/state/index.ts'

export const ipOf = (index: number, block = 10): string =>
  `${block}.${(index >> 16) & 255}.${(index >> 8) & 255}.${index & 255}`

export const serviceKeyOf = (index: number): string =>
  `ns-${index % 50}/service-${index}.ns-${index % 50}.svc.cluster.local`

/** The workloads of a mesh: as many services, each with the same number of pods. */
export function addressUpdate(workloads: number, services: number, padding = 0) {
  const resources: { name: string; version: string; body: Uint8Array }[] = []
  for (let index = 0; index < services; index += 1) {
    const [namespace = '', hostname = ''] = serviceKeyOf(index).split('/')
    const value = {
      name: `service-${index}`,
      namespace,
      hostname,
      addresses: [{ network: 'network', address: ipToBytes(ipOf(index, 20)) }],
      ports: [{ servicePort: 80, targetPort: 8080 }],
      subjectAltNames: [],
    }
    const body = toBinary(proto.AddressSchema, create(proto.AddressSchema, { type: { case: 'service', value } }))
    resources.push({ name: serviceKeyOf(index), version: '1', body })
  }
  for (let index = 0; index < workloads; index += 1) {
    const service = index % Math.max(1, services)
    const namespace = `ns-${service % 50}`
    const uid = `cluster//Pod/${namespace}/deployment-${service}-5b6c7d8e9f-${index.toString(36).padStart(5, '0')}`
    const value = {
      uid,
      name: uid.slice(uid.lastIndexOf('/') + 1),
      namespace,
      serviceAccount: `account-${service}`,
      network: 'network',
      node: `node-${index % 200}`,
      clusterId: 'cluster',
      trustDomain: 'cluster.local',
      tunnelProtocol: proto.TunnelProtocol.HBONE,
      addresses: [ipToBytes(ipOf(index))],
      canonicalName: `deployment-${service}`,
      canonicalRevision: `latest${'-'.repeat(padding)}`,
      workloadName: `deployment-${service}`,
      workloadType: proto.WorkloadType.DEPLOYMENT,
      locality: { region: 'region', zone: `zone-${index % 3}`, subzone: '' },
      services: services === 0 ? {} : { [serviceKeyOf(service)]: { ports: [{ servicePort: 80, targetPort: 8080 }] } },
    }
    const body = toBinary(proto.AddressSchema, create(proto.AddressSchema, { type: { case: 'workload', value } }))
    resources.push({ name: uid, version: '1', body })
  }
  return { typeUrl: addressTypeUrl, resources, removed: [] as string[] }
}

export function workloadOf(index: number, more: Partial<Workload> = {}): Workload {
  return {
    uid: `cluster//Pod/default/w-${index}`,
    name: `w-${index}`,
    namespace: 'default',
    addresses: [ipOf(index)],
    hostname: '',
    network: '',
    networkMode: 'Standard',
    protocol: 'HBONE',
    nativeTunnel: false,
    trustDomain: 'cluster.local',
    serviceAccount: 'default',
    node: `node-${index % 100}`,
    clusterId: 'Kubernetes',
    canonicalName: 'w',
    canonicalRevision: 'latest',
    workloadName: 'w',
    workloadType: 'deployment',
    locality: { region: `region-${index % 3}`, zone: `zone-${index % 9}`, subzone: `subzone-${index % 27}` },
    capacity: 1,
    status: 'Healthy',
    authorizationPolicies: [],
    services: new Map(),
    ...more,
  }
}

export function serviceOf(index: number, more: Partial<Service> = {}): Service {
  return {
    name: `s-${index}`,
    namespace: 'default',
    hostname: `s-${index}.default.svc.cluster.local`,
    vips: [{ network: '', ip: ipOf(index, 20) }],
    cidrVips: [],
    ports: new Map([[80, 80]]),
    subjectAltNames: [],
    weightedWaypoints: [],
    canonical: false,
    visibility: 'Public',
    ...more,
  }
}

const none: readonly never[] = []

/** Denies ten other namespaces and accounts. */
export function policyOf(index: number): Policy {
  const rules = Array.from({ length: 10 }, (_, rule) => [
    [
      {
        namespaces: [{ kind: 'exact' as const, value: `other-${index}-${rule}` }],
        principals: [{ kind: 'exact' as const, value: `cluster.local/ns/other-${index}-${rule}/sa/other` }],
        notNamespaces: none,
        notPrincipals: none,
        serviceAccounts: none,
        notServiceAccounts: none,
        sourceIps: none,
        notSourceIps: none,
        destinationIps: none,
        notDestinationIps: none,
        destinationPorts: none,
        notDestinationPorts: none,
      },
    ],
  ])
  return { name: `deny-${index}`, namespace: 'root', scope: 'Global', action: 'Deny', dryRun: false, rules }
}
