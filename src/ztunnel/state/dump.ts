// The mesh state as JSON in the shape of the local file, as `istioctl ztunnel-config` reads it.
import type { Endpoint, GatewayAddress, Policy, PolicyMatch, Service, StringMatch, Workload } from '../model.ts'
import { type MeshView, policyKey, serviceKey } from './view.ts'

export interface StateDump {
  readonly workloads: readonly unknown[]
  readonly services: readonly unknown[]
  readonly policies: readonly unknown[]
  readonly stagedServices: Readonly<Record<string, Readonly<Record<string, unknown>>>>
}

/** Everything, sorted: workloads by uid, services by host name, policies by name. */
export function dumpState(view: MeshView): StateDump {
  const sorted = <T>(items: Iterable<T>, key: (item: T) => string): T[] =>
    [...items].sort((a, b) => (key(a) < key(b) ? -1 : 1))
  return {
    workloads: sorted(view.workloads(), (one) => one.uid).map(dumpWorkload),
    services: sorted(view.services(), (one) => `${one.hostname}/${one.namespace}`).map((one) =>
      dumpService(one, view.endpoints(one)),
    ),
    policies: sorted(view.policies(), policyKey).map(dumpPolicy),
    stagedServices: Object.fromEntries(
      [...view.stagedServices()].map(([key, workloads]) => [
        key,
        Object.fromEntries(
          [...workloads].map((one) => [one.uid, dumpEndpoint(one.uid, one.services.get(key), one.status)]),
        ),
      ]),
    ),
  }
}

function dumpWorkload(workload: Workload): unknown {
  const { locality, applicationTunnel } = workload
  return withoutDefaults({
    always: {
      workloadIps: workload.addresses,
      protocol: workload.protocol,
      networkMode: workload.networkMode,
      uid: workload.uid,
      name: workload.name,
      namespace: workload.namespace,
      status: workload.status,
      clusterId: workload.clusterId,
      capacity: workload.capacity,
    },
    optional: {
      waypoint: dumpGateway(workload.waypoint),
      networkGateway: dumpGateway(workload.networkGateway),
      network: workload.network,
      trustDomain: workload.trustDomain,
      serviceAccount: workload.serviceAccount,
      workloadName: workload.workloadName,
      workloadType: workload.workloadType,
      canonicalName: workload.canonicalName,
      canonicalRevision: workload.canonicalRevision,
      hostname: workload.hostname,
      node: workload.node,
      nativeTunnel: workload.nativeTunnel,
      authorizationPolicies: workload.authorizationPolicies,
      applicationTunnel,
      locality: withoutDefaults({ always: {}, optional: { ...locality } }),
      services: [...workload.services.keys()],
    },
  })
}

function dumpService(service: Service, members: Iterable<Endpoint>): unknown {
  const endpoints = [...members].map(
    ({ workload, ports, status }) => [workload.uid, dumpEndpoint(workload.uid, ports, status)] as const,
  )
  return withoutDefaults({
    always: {
      name: service.name,
      namespace: service.namespace,
      hostname: service.hostname,
      vips: service.vips.map((vip) => `${vip.network}/${vip.ip}`),
      ports: Object.fromEntries(service.ports),
      endpoints: Object.fromEntries(endpoints),
      subjectAltNames: service.subjectAltNames,
      canonical: service.canonical,
      visibility: service.visibility,
    },
    optional: {
      cidrVips: service.cidrVips,
      waypoint: dumpGateway(service.waypoint),
      weightedWaypoints: service.weightedWaypoints.map(({ destination, weight }) => ({
        destination: dumpGateway(destination),
        weight,
      })),
      loadBalancer: service.loadBalancer,
      ipFamilies: service.ipFamilies,
    },
  })
}

/** A policy in the shape of the local file. */
export function dumpPolicy(policy: Policy): unknown {
  const { name, namespace, scope, action, dryRun, rules } = policy
  const shown = rules.map((rule) => rule.map((clause) => clause.map(dumpMatch)))
  const rejected = policy.rejected === undefined ? {} : { rejected: policy.rejected }
  return { name, namespace, scope, action, dryRun, rules: shown, ...rejected }
}

/** The content of a local file, as it was read. */
export function dumpLocalContent(content: {
  readonly workloads: readonly Workload[]
  readonly services: readonly Service[]
  readonly policies: readonly Policy[]
}): unknown {
  return {
    workloads: content.workloads.map(dumpWorkload),
    policies: content.policies.map(dumpPolicy),
    services: content.services.map((service) => dumpService(service, [])),
  }
}

function dumpMatch(match: PolicyMatch): unknown {
  const texts = (list: readonly StringMatch[]) => list.map(dumpStringMatch)
  const blocks = (list: PolicyMatch['sourceIps']) => list.map((cidr) => cidr.text)
  return withoutDefaults({
    always: {},
    optional: {
      namespaces: texts(match.namespaces),
      notNamespaces: texts(match.notNamespaces),
      principals: texts(match.principals),
      notPrincipals: texts(match.notPrincipals),
      serviceAccounts: match.serviceAccounts,
      notServiceAccounts: match.notServiceAccounts,
      sourceIps: blocks(match.sourceIps),
      notSourceIps: blocks(match.notSourceIps),
      destinationIps: blocks(match.destinationIps),
      notDestinationIps: blocks(match.notDestinationIps),
      destinationPorts: match.destinationPorts,
      notDestinationPorts: match.notDestinationPorts,
    },
  })
}

function dumpStringMatch(match: StringMatch): unknown {
  switch (match.kind) {
    case 'exact':
      return { Exact: match.value }
    case 'prefix':
      return { Prefix: match.value }
    case 'suffix':
      return { Suffix: match.value }
    case 'presence':
      return { Presence: [] }
  }
}

function dumpGateway(gateway: GatewayAddress | undefined): unknown {
  if (gateway === undefined) return undefined
  const { destination } = gateway
  const text =
    destination.kind === 'address'
      ? `${destination.address.network}/${destination.address.ip}`
      : serviceKey(destination.hostname)
  return { destination: text, hboneMtlsPort: gateway.hbonePort }
}

function dumpEndpoint(
  uid: string,
  ports: ReadonlyMap<number, number> | undefined,
  status: Workload['status'],
): unknown {
  return { workloadUid: uid, port: Object.fromEntries(ports ?? []), status }
}

function withoutDefaults(parts: {
  readonly always: Readonly<Record<string, unknown>>
  readonly optional: Readonly<Record<string, unknown>>
}): Readonly<Record<string, unknown>> {
  const given = Object.entries(parts.optional).filter(([, value]) => {
    if (value === undefined || value === '' || value === false) return false
    if (Array.isArray(value)) return value.length > 0
    return typeof value !== 'object' || value === null || Object.keys(value).length > 0
  })
  return { ...parts.always, ...Object.fromEntries(given) }
}
