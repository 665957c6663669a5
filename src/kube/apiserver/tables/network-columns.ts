// The columns of services, endpoints and the networking kinds.
import { ageColumn, type Column, column, type Loose, nameColumn } from './column.ts'
import { labelsText, selectorText } from './workload-columns.ts'

const longestList = 3

export const networkColumns: readonly (readonly [string, readonly Column[]])[] = [
  [
    '/Service',
    [
      nameColumn,
      column('Type', (o) => o.spec?.type ?? ''),
      column('Cluster-IP', (o) => o.spec?.clusterIP || '<none>'),
      column('External-IP', externalAddress),
      column('Port(s)', servicePorts),
      ageColumn,
      column('Selector', (o) => labelsText(o.spec?.selector), 1),
    ],
  ],
  ['/Endpoints', [nameColumn, column('Endpoints', endpoints), ageColumn]],
  [
    'discovery.k8s.io/EndpointSlice',
    [
      nameColumn,
      column('AddressType', (o) => o.addressType ?? ''),
      column('Ports', slicePorts),
      column('Endpoints', (o) =>
        shortList(
          (o.endpoints ?? []).flatMap((one: Loose) => one.addresses ?? []),
          '<unset>',
        ),
      ),
      ageColumn,
    ],
  ],
  [
    'networking.k8s.io/Ingress',
    [
      nameColumn,
      column('Class', (o) => o.spec?.ingressClassName ?? '<none>'),
      column('Hosts', (o) =>
        shortList(
          (o.spec?.rules ?? []).map((rule: Loose) => rule.host || '*'),
          '*',
        ),
      ),
      column('Address', (o) =>
        (o.status?.loadBalancer?.ingress ?? []).map((one: Loose) => one.ip ?? one.hostname).join(','),
      ),
      column('Ports', (o) => ((o.spec?.tls ?? []).length > 0 ? '80, 443' : '80')),
      ageColumn,
    ],
  ],
  [
    'networking.k8s.io/NetworkPolicy',
    [nameColumn, column('Pod-Selector', (o) => selectorText(o.spec?.podSelector)), ageColumn],
  ],
  [
    'networking.k8s.io/IngressClass',
    [
      nameColumn,
      column('Controller', (o) => o.spec?.controller ?? ''),
      column('Parameters', () => '<none>'),
      ageColumn,
    ],
  ],
]

function externalAddress(service: Loose): string {
  const { type, externalIPs = [], externalName } = service.spec ?? {}
  if (type === 'ExternalName') return externalName ?? ''
  const assigned =
    type === 'LoadBalancer'
      ? (service.status?.loadBalancer?.ingress ?? []).map((one: Loose) => one.ip ?? one.hostname)
      : []
  const all = [...assigned, ...externalIPs]
  if (all.length > 0) return all.join(',')
  return type === 'LoadBalancer' ? '<pending>' : '<none>'
}

function servicePorts(service: Loose): string {
  const ports = (service.spec?.ports ?? []).map((one: Loose) =>
    one.nodePort ? `${one.port}:${one.nodePort}/${one.protocol ?? 'TCP'}` : `${one.port}/${one.protocol ?? 'TCP'}`,
  )
  return ports.length === 0 ? '<none>' : ports.join(',')
}

function endpoints(object: Loose): string {
  const all = (object.subsets ?? []).flatMap((subset: Loose) => {
    const ports = (subset.ports ?? []).length === 0 ? [undefined] : subset.ports
    return ports.flatMap((port: Loose) =>
      (subset.addresses ?? []).map((one: Loose) => (port === undefined ? one.ip : `${one.ip}:${port.port}`)),
    )
  })
  return shortList(all, '<none>')
}

function slicePorts(slice: Loose): string {
  return shortList(
    (slice.ports ?? []).map((port: Loose) => String(port.port ?? '*')),
    '<unset>',
  )
}

function shortList(values: readonly string[], none: string): string {
  if (values.length === 0) return none
  const shown = values.slice(0, longestList).join(',')
  return values.length > longestList ? `${shown} + ${values.length - longestList} more...` : shown
}
