// The sync state of the proxies as a table.
import { columns } from './table.ts'

/** One client of a control plane, as its page tells it. */
export interface ProxySync {
  readonly cluster_id: string
  readonly proxy: string
  readonly proxy_type: string
  readonly istio_version: string
  readonly resources?: Readonly<
    Record<
      string,
      { readonly sent?: string; readonly acked?: string; readonly sentTime?: string; readonly lastError?: string }
    >
  >
}

export interface ProxyOfPod extends ProxySync {
  /** The control plane pod that it is connected to. */
  readonly istiod: string
}

const shortNames: Readonly<Record<string, string>> = {
  'envoy.config.cluster.v3.Cluster': 'CDS',
  'envoy.config.listener.v3.Listener': 'LDS',
  'envoy.config.endpoint.v3.ClusterLoadAssignment': 'EDS',
  'envoy.config.route.v3.RouteConfiguration': 'RDS',
  'envoy.extensions.transport_sockets.tls.v3.Secret': 'SDS',
  'envoy.config.core.v3.TypedExtensionConfig': 'ECDS',
  'istio.networking.nds.v1.NameTable': 'NDS',
  'istio.mesh.v1alpha1.ProxyConfig': 'PCDS',
  'istio.workload.Address': 'WDS',
  'istio.workload.Workload': 'WDS',
  'istio.security.Authorization': 'WADS',
}

export function shortTypeName(typeUrl: string): string {
  return shortNames[typeUrl.replace('type.googleapis.com/', '')] ?? typeUrl
}

export function proxyStatusTable(proxies: readonly ProxyOfPod[]): string {
  const rows = sorted(proxies).map((proxy) => {
    const types = [
      ...new Set(
        Object.keys(proxy.resources ?? {})
          .sort(byCoreOrder)
          .map(shortTypeName),
      ),
    ]
    const subscribed = types.length === 0 ? '0' : `${types.length} (${types.join(',')})`
    return [proxy.proxy, proxy.cluster_id, proxy.istiod, proxy.istio_version, subscribed]
  })
  return columns([['NAME', 'CLUSTER', 'ISTIOD', 'VERSION', 'SUBSCRIBED TYPES'], ...rows])
}

/** With a column for the state of each type. */
export function verboseProxyStatusTable(proxies: readonly ProxyOfPod[], now: Date): string {
  const types = [...new Set(proxies.flatMap(({ resources = {} }) => Object.keys(resources)))].sort()
  const rows = sorted(proxies).map((proxy) => [
    proxy.proxy,
    proxy.cluster_id,
    ...types.map((type) => syncText(proxy.resources?.[type], now)),
    proxy.istiod,
    proxy.istio_version,
  ])
  return columns([['NAME', 'CLUSTER', ...types.map(shortTypeName), 'ISTIOD', 'VERSION'], ...rows])
}

function syncText(state: NonNullable<ProxySync['resources']>[string] | undefined, now: Date): string {
  if (state === undefined) return 'IGNORED'
  if (state.sent === undefined || state.sent === '') return 'NOT SENT'
  const word = state.lastError !== undefined ? 'ERROR' : state.sent === state.acked ? 'SYNCED' : 'STALE'
  return state.sentTime === undefined ? word : `${word} (${age(now.getTime() - Date.parse(state.sentTime))})`
}

/** As `4d`, `3h12m`, `3m12s`, `12s`. */
export function age(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000))
  const [days, hours, minutes] = [Math.floor(seconds / 86_400), Math.floor(seconds / 3600), Math.floor(seconds / 60)]
  if (days >= 2) return `${days}d`
  if (hours >= 1) return `${hours}h${minutes % 60 === 0 ? '' : `${minutes % 60}m`}`
  if (minutes >= 1) return `${minutes}m${seconds % 60 === 0 ? '' : `${seconds % 60}s`}`
  return `${seconds}s`
}

const coreOrder = ['CDS', 'LDS', 'EDS', 'RDS']

function byCoreOrder(a: string, b: string): number {
  const rank = (type: string): number => {
    const index = coreOrder.indexOf(shortTypeName(type))
    return index === -1 ? coreOrder.length : index
  }
  return rank(a) - rank(b) || (a < b ? -1 : 1)
}

function sorted(proxies: readonly ProxyOfPod[]): readonly ProxyOfPod[] {
  return [...proxies].sort((a, b) => (a.proxy < b.proxy ? -1 : 1))
}
