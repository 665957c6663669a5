// A Service of this cluster as a ServiceEntry, for control planes that do not see the cluster.
import type { ServiceEntry } from '../api/index.ts'
import { ipText, type ServiceInfo } from '../discovery/ambient/index.ts'
import { workload } from '../proto/index.ts'

const protocols: Readonly<Record<workload.AppProtocol, string>> = {
  [workload.AppProtocol.UNKNOWN]: 'TCP',
  [workload.AppProtocol.HTTP11]: 'HTTP',
  [workload.AppProtocol.HTTP2]: 'HTTP2',
  [workload.AppProtocol.GRPC]: 'GRPC',
  [workload.AppProtocol.TCP]: 'TCP',
  [workload.AppProtocol.TLS]: 'TLS',
}

/** Without endpoints: those are for whoever sees the workloads. A Service without addresses resolves to none. */
export function syntheticServiceEntry(info: ServiceInfo): ServiceEntry {
  const { source, namespace, hostname, ports, appProtocols, selector, subjectAltNames } = info
  const addresses = info.addresses.map(({ address, length }) => {
    const text = ipText(address)
    return length === undefined ? text : `${text}/${length}`
  })
  return {
    apiVersion: 'networking.istio.io/v1',
    kind: 'ServiceEntry',
    metadata: {
      namespace,
      name: `synthetic-${source.name}`,
      ...(source.created === '' ? {} : { creationTimestamp: source.created }),
    },
    spec: {
      hosts: [hostname],
      ...(addresses.length === 0 ? {} : { addresses }),
      ports: ports.map(({ number, name, protocol, target }, at) => ({
        number,
        name: name === '' ? `port-${number}` : name,
        protocol: protocol === 'UDP' ? 'UDP' : protocols[appProtocols[at] ?? workload.AppProtocol.UNKNOWN],
        ...(typeof target === 'number' && target !== 0 && target !== number ? { targetPort: target } : {}),
      })),
      location: 'MESH_INTERNAL',
      resolution: addresses.length === 0 ? 'NONE' : 'STATIC',
      ...(subjectAltNames.length === 0 ? {} : { subjectAltNames }),
      ...(selector === undefined ? {} : { workloadSelector: { labels: selector } }),
    },
  }
}
