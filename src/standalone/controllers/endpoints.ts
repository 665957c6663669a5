// The endpoints of a Service as a pure function of its pods: addresses, conditions, and ports per pod.
import { isIP } from 'node:net'
import type * as discovery from 'kubernetes-types/discovery/v1.js'
import { isReady, isTerminating, type Node, type Pod, type Service } from './objects.ts'

export interface SlicePlan {
  readonly addressType: 'IPv4' | 'IPv6'
  readonly endpoints: discovery.Endpoint[]
  readonly ports: discovery.EndpointPort[]
}

/** More endpoints than this go into a further slice. */
const sliceLimit = 100

/** Slices by address family and by resolved ports: a named port may be another number in each pod. At least one slice. */
export function endpointsOf(
  service: Service,
  pods: readonly Pod[],
  nodes: ReadonlyMap<string, Node>,
): readonly SlicePlan[] {
  const families = service.spec?.ipFamilies ?? ['IPv4']
  return families.flatMap((family) => {
    const addressType = family === 'IPv6' ? 'IPv6' : 'IPv4'
    const groups = new Map<string, { ports: discovery.EndpointPort[]; endpoints: discovery.Endpoint[] }>()
    for (const pod of pods.toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1))) {
      const address = addressOf(pod, addressType)
      if (address === undefined || isOver(pod)) continue
      const ports = portsOf(service, pod)
      const key = JSON.stringify(ports)
      const group = groups.get(key) ?? { ports, endpoints: [] }
      group.endpoints.push(endpointOf(service, pod, address, nodes))
      groups.set(key, group)
    }
    if (groups.size === 0) return [{ addressType, endpoints: [], ports: [] } as const]
    return [...groups.values()].flatMap(({ ports, endpoints }) =>
      chunks(endpoints).map((part) => ({ addressType, endpoints: part, ports })),
    )
  })
}

function chunks<T>(items: readonly T[]): T[][] {
  return Array.from({ length: Math.ceil(items.length / sliceLimit) }, (_, index) =>
    items.slice(index * sliceLimit, (index + 1) * sliceLimit),
  )
}

function isOver(pod: Pod): boolean {
  return pod.status?.phase === 'Succeeded' || pod.status?.phase === 'Failed'
}

function addressOf(pod: Pod, family: 'IPv4' | 'IPv6'): string | undefined {
  const wanted = family === 'IPv6' ? 6 : 4
  const all = [...(pod.status?.podIPs ?? []).map(({ ip }) => ip ?? ''), pod.status?.podIP ?? '']
  return all.find((ip) => isIP(ip) === wanted)
}

function endpointOf(service: Service, pod: Pod, address: string, nodes: ReadonlyMap<string, Node>): discovery.Endpoint {
  const { namespace, name, uid } = pod.metadata
  const isServing = isReady(pod)
  const terminating = isTerminating(pod)
  const alwaysReady = service.spec?.publishNotReadyAddresses === true
  const nodeName = pod.spec?.nodeName
  const zone = nodes.get(nodeName ?? '')?.metadata.labels?.['topology.kubernetes.io/zone']
  const { hostname, subdomain } = pod.spec ?? {}
  const isNamed = hostname !== undefined && hostname !== '' && subdomain === service.metadata.name
  return {
    addresses: [address],
    conditions: { ready: alwaysReady || (isServing && !terminating), serving: isServing, terminating },
    ...(isNamed ? { hostname } : {}),
    ...(nodeName === undefined || nodeName === '' ? {} : { nodeName }),
    ...(zone === undefined ? {} : { zone }),
    targetRef: {
      kind: 'Pod',
      name,
      ...(namespace === undefined ? {} : { namespace }),
      ...(uid === undefined ? {} : { uid }),
    },
  }
}

/** A named target port that the pod does not have is left out. */
function portsOf(service: Service, pod: Pod): discovery.EndpointPort[] {
  return (service.spec?.ports ?? []).flatMap((port) => {
    const protocol = port.protocol ?? 'TCP'
    const number = targetPort(port.targetPort ?? port.port, protocol, pod)
    if (number === undefined) return []
    const { appProtocol } = port
    return [{ name: port.name ?? '', port: number, protocol, ...(appProtocol === undefined ? {} : { appProtocol }) }]
  })
}

function targetPort(target: number | string, protocol: string, pod: Pod): number | undefined {
  if (typeof target === 'number') return target
  const sidecars = (pod.spec?.initContainers ?? []).filter((container) => container.restartPolicy === 'Always')
  const ports = [...(pod.spec?.containers ?? []), ...sidecars].flatMap((container) => container.ports ?? [])
  const named = ports.find((port) => port.name === target && (port.protocol ?? 'TCP') === protocol)
  return named?.containerPort
}
