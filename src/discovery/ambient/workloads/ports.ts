// Which port of a workload stands behind each port of a service it belongs to.
import type { ServicePort } from '../model.ts'

export interface PortPair {
  readonly servicePort: number
  readonly targetPort: number
}

/** One pair a service port, in order; ports without a target are left out. Of ports with one number the TCP one counts. */
export function portPairs(
  ports: readonly ServicePort[],
  targetOf: (port: ServicePort) => number | undefined,
): PortPair[] {
  const deciding = new Map<number, ServicePort>()
  for (const port of ports) {
    const known = deciding.get(port.number)
    if (known === undefined || (known.protocol !== 'TCP' && port.protocol === 'TCP')) deciding.set(port.number, port)
  }
  return [...deciding.values()].flatMap((port) => {
    const targetPort = targetOf(port)
    return targetPort === undefined ? [] : [{ servicePort: port.number, targetPort }]
  })
}

export interface PodPorts {
  readonly containers?: readonly ContainerPorts[]
  readonly initContainers?: readonly (ContainerPorts & { readonly restartPolicy?: string })[]
}

interface ContainerPorts {
  readonly ports?: readonly {
    readonly name?: string
    readonly containerPort: number
    readonly protocol?: string
  }[]
}

/** The TCP port of this name, in the containers or else in the sidecars among the init containers. */
function namedPort(spec: PodPorts | undefined, name: string): number | undefined {
  const sidecars = (spec?.initContainers ?? []).filter(({ restartPolicy }) => restartPolicy === 'Always')
  for (const { ports = [] } of [...(spec?.containers ?? []), ...sidecars]) {
    const port = ports.find((one) => one.name === name && (one.protocol ?? 'TCP') === 'TCP')
    if (port !== undefined) return port.containerPort
  }
  return undefined
}

/** For a pod in a Kubernetes Service, or in the service of a ServiceEntry. */
export function podTarget(spec: PodPorts | undefined, kind: 'Service' | 'ServiceEntry') {
  return (port: ServicePort): number | undefined => {
    if (kind === 'ServiceEntry') return namedPort(spec, port.name) ?? numericTarget(port)
    return typeof port.target === 'string' ? namedPort(spec, port.target) : numericTarget(port)
  }
}

/** For a WorkloadEntry or an inline endpoint with its own port map. */
export function entryTarget(ports: Readonly<Record<string, number>> | undefined, kind: 'Service' | 'ServiceEntry') {
  const own = (name: string): number | undefined =>
    ports !== undefined && Object.hasOwn(ports, name) ? ports[name] : undefined
  return (port: ServicePort): number | undefined => {
    if (kind === 'Service' && typeof port.target === 'string') return own(port.target)
    return own(port.name) ?? numericTarget(port)
  }
}

function numericTarget({ number, target }: ServicePort): number | undefined {
  if (typeof target === 'string') return undefined
  return target === 0 ? number : target
}
