// The names of a cluster: what the Kubernetes DNS specification says about services, endpoints and pods. Pure.
import type { EndpointSlice, Service } from '../node/types.ts'

export interface ClusterView {
  readonly domain: string
  service(namespace: string, name: string): Service | undefined
  hasNamespace(namespace: string): boolean
  slices(namespace: string, service: string): readonly EndpointSlice[]
  /** A service by one of its cluster IPs, an endpoint by its address: the names for reverse look-ups. */
  namesOf(ip: string): readonly string[]
}

export type Answer =
  | { readonly kind: 'A' | 'AAAA'; readonly name: string; readonly ip: string }
  | {
      readonly kind: 'SRV'
      readonly name: string
      readonly target: string
      readonly port: number
      readonly weight: number
    }
  | { readonly kind: 'CNAME'; readonly name: string; readonly target: string }
  | { readonly kind: 'PTR'; readonly name: string; readonly target: string }
  | { readonly kind: 'TXT'; readonly name: string; readonly text: string }

export type Resolution =
  | { readonly kind: 'answers'; readonly answers: readonly Answer[]; readonly additionals: readonly Answer[] }
  /** Not a name of the cluster. */
  | { readonly kind: 'forward' }
  | { readonly kind: 'nxdomain' }

const nothing: Resolution = { kind: 'nxdomain' }
const answered = (answers: readonly Answer[], additionals: readonly Answer[] = []): Resolution => ({
  kind: 'answers',
  answers,
  additionals,
})

export function resolveName(question: string, type: string, view: ClusterView): Resolution {
  const name = question.toLowerCase().replace(/\.$/, '')
  const reversed = addressOfReverseName(name)
  if (reversed !== undefined) {
    const targets = view.namesOf(reversed)
    if (targets.length === 0) return { kind: 'forward' }
    return answered(type === 'PTR' ? targets.map((target) => ({ kind: 'PTR', name, target })) : [])
  }
  if (name !== view.domain && !name.endsWith(`.${view.domain}`)) return { kind: 'forward' }
  const labels = name.slice(0, -view.domain.length - 1).split('.')
  if (name === view.domain) return answered([])
  const zone = labels.pop()
  if (zone === 'dns-version') return answered(type === 'TXT' ? [{ kind: 'TXT', name, text: '1.1.0' }] : [])
  if (zone !== 'svc' && zone !== 'pod') return nothing
  const namespace = labels.pop()
  if (namespace === undefined) return answered([])
  if (!view.hasNamespace(namespace)) return nothing
  if (zone === 'pod') return podName(name, type, labels)
  const serviceName = labels.pop()
  if (serviceName === undefined) return answered([])
  const service = view.service(namespace, serviceName)
  if (service === undefined) return nothing
  return serviceAnswers(name, type, labels, service, view)
}

function podName(name: string, type: string, labels: readonly string[]): Resolution {
  const [label = ''] = labels
  const ip = label.replaceAll('-', '.')
  if (labels.length !== 1 || !/^\d+\.\d+\.\d+\.\d+$/.test(ip)) return labels.length === 0 ? answered([]) : nothing
  return answered(type === 'A' ? [{ kind: 'A', name, ip }] : [])
}

interface Target {
  readonly host: string
  readonly ip: string
  readonly ports: readonly { readonly name: string; readonly protocol: string; readonly port: number }[]
}

function serviceAnswers(
  name: string,
  type: string,
  labels: readonly string[],
  service: Service,
  view: ClusterView,
): Resolution {
  const { namespace = '', name: serviceName } = service.metadata
  const base = `${serviceName}.${namespace}.svc.${view.domain}`
  if (service.spec?.type === 'ExternalName') {
    const target = service.spec.externalName?.replace(/\.$/, '') ?? ''
    return labels.length === 0 ? answered([{ kind: 'CNAME', name, target }]) : nothing
  }
  const targets = targetsOf(service, base, view)
  if (labels.length === 0)
    return answered([...addresses(name, type, targets), ...srvOf(name, type, targets, '', '')], extra(type, targets))
  const [first = '', second = ''] = labels
  if (labels.length === 2 && first.startsWith('_') && second.startsWith('_')) {
    const matching = srvOf(name, 'SRV', targets, first.slice(1), second.slice(1))
    if (matching.length === 0) return nothing
    return answered(type === 'SRV' ? matching : [], extra(type, targets))
  }
  const hosts = labels.length === 1 ? targets.filter((target) => target.host === `${first}.${base}`) : []
  return hosts.length === 0 ? nothing : answered(addresses(name, type, hosts))
}

function targetsOf(service: Service, base: string, view: ClusterView): Target[] {
  const ips = (service.spec?.clusterIPs ?? [service.spec?.clusterIP ?? '']).filter((ip) => ip !== '' && ip !== 'None')
  if (ips.length > 0) {
    const ports = (service.spec?.ports ?? []).map(({ name = '', protocol = 'TCP', port }) => ({ name, protocol, port }))
    return ips.map((ip) => ({ host: base, ip, ports }))
  }
  const { namespace = '', name } = service.metadata
  const evenUnready = service.spec?.publishNotReadyAddresses === true
  return view.slices(namespace, name).flatMap((slice) =>
    (slice.endpoints ?? [])
      .filter((endpoint) => evenUnready || endpoint.conditions?.ready !== false)
      .flatMap((endpoint) =>
        endpoint.addresses.map((ip) => ({
          host: `${endpoint.hostname ?? ip.replace(/[.:]/g, '-')}.${base}`,
          ip,
          ports: (slice.ports ?? []).flatMap(({ name: portName = '', protocol = 'TCP', port }) =>
            port === undefined ? [] : [{ name: portName, protocol, port }],
          ),
        })),
      ),
  )
}

function addresses(name: string, type: string, targets: readonly Target[]): Answer[] {
  const kind = type === 'A' || type === 'ANY' ? 'A' : type === 'AAAA' ? 'AAAA' : undefined
  if (kind === undefined) return []
  const ips = new Set(targets.map((target) => target.ip).filter((ip) => ip.includes(':') === (kind === 'AAAA')))
  return [...ips].map((ip) => ({ kind, name, ip }))
}

function srvOf(name: string, type: string, targets: readonly Target[], port: string, protocol: string): Answer[] {
  if (type !== 'SRV') return []
  const records = targets.flatMap((target) =>
    target.ports
      .filter((one) => port === '' || (one.name === port && one.protocol.toLowerCase() === protocol))
      .map((one) => ({ target: target.host, port: one.port })),
  )
  const weight = Math.max(1, Math.floor(100 / Math.max(1, records.length)))
  return records.map((record): Answer => ({ kind: 'SRV', name, weight, ...record }))
}

function extra(type: string, targets: readonly Target[]): Answer[] {
  if (type !== 'SRV') return []
  return targets.map(({ host, ip }) => ({ kind: ip.includes(':') ? 'AAAA' : 'A', name: host, ip }))
}

/** `1.2.3.4` for `4.3.2.1.in-addr.arpa`. */
export function addressOfReverseName(name: string): string | undefined {
  const match = /^(\d+)\.(\d+)\.(\d+)\.(\d+)\.in-addr\.arpa$/.exec(name)
  return match ? match.slice(1, 5).reverse().join('.') : undefined
}
