// What decisions may ask of the mesh. Every answer is of one consistent state: pushes are applied as a whole, between two calls.
import type { Endpoint, PodInfo, Policy, Service, Workload } from '../model.ts'
import type { EndpointList } from './endpoint-list.ts'
import type { PolicyFacts } from './policy-conditions.ts'

export interface MeshView {
  workload(uid: string): Workload | undefined
  /** Never a host-network workload. Of several, a pod comes first, then one that speaks HBONE, then the newest. */
  workloadByAddress(network: string, ip: string): Workload | undefined
  workloadByHostname(namespace: string, hostname: string): Workload | undefined
  /** The workload of this node with the name, namespace and service account of the pod. */
  localWorkload(pod: PodInfo): Workload | undefined

  /** By `<namespace>/<hostname>`. */
  service(key: string): Service | undefined
  /**
   * The service that owns an address: exact VIPs before CIDRs; the client's namespace before canonical before first seen.
   * Without a client namespace, visibility is not looked at.
   */
  serviceByVip(network: string, ip: string, clientNamespace?: string): Service | undefined
  serviceByHostname(hostname: string, clientNamespace?: string): Service | undefined
  /** All services with the host name (any case), one a namespace, first seen first. */
  servicesByHostname(hostname: string): readonly Service[]
  /** Every endpoint whose workload is known, healthy or not. */
  endpoints(service: Service): EndpointList
  endpoint(service: Service, workloadUid: string): Endpoint | undefined

  policy(key: string): Policy | undefined
  /** Of the policies of the workload's namespace, the global ones, and those the workload names. */
  policiesFor(workload: Pick<Workload, 'namespace' | 'authorizationPolicies'>, facts: PolicyFacts): ApplicablePolicies

  workloads(): Iterable<Workload>
  services(): Iterable<Service>
  policies(): Iterable<Policy>
  /** `<namespace>/<hostname>` of services that have endpoints but are not known themselves, with their workloads. */
  stagedServices(): Iterable<readonly [key: string, workloads: Iterable<Workload>]>
}

export interface ApplicablePolicies {
  /** Those that may match a connection of which this is known, in the order in which they came; the others do not. */
  readonly policies: readonly Policy[]
  /** How many ALLOW policies there are, whether they may match or not. */
  readonly allow: number
  /** The same of those that only look on. */
  readonly dryRunAllow: number
}

/** `<namespace>/<hostname>`. */
export const serviceKey = (service: { readonly namespace: string; readonly hostname: string }): string =>
  `${service.namespace}/${service.hostname}`

/** `<namespace>/<name>`. */
export const policyKey = (policy: { readonly namespace: string; readonly name: string }): string =>
  `${policy.namespace}/${policy.name}`

export function isVisible(service: Service, clientNamespace: string | undefined): boolean {
  return clientNamespace === undefined || service.visibility === 'Public' || service.namespace === clientNamespace
}

/** The endpoints that may take traffic under the service's own health policy. */
export function* usableEndpoints(view: MeshView, service: Service): Generator<Endpoint> {
  const all = service.loadBalancer?.healthPolicy === 'AllowAll'
  for (const endpoint of view.endpoints(service)) if (all || endpoint.status === 'Healthy') yield endpoint
}
