// The HTTP servers of the node proxy's main thread: admin on localhost, metrics for everybody.
import type { MetricsRegistry } from '../../observability/index.ts'
import { type HttpServer, startHttpServer } from './http-server.ts'
import { type AdminOptions, adminRoutes, statsRoutes } from './routes.ts'

export {
  type ConfigDumpSources,
  dumpAll,
  dumpPods,
  dumpVersion,
  formatBuildInfo,
  type PodsListing,
  type VersionFacts,
} from './config-dump.ts'
export type { HttpServer } from './http-server.ts'
export type { AdminOptions } from './routes.ts'

/** Binds 127.0.0.1 and, where `ipv6Loopback`, ::1. */
export async function startAdminServer(
  options: AdminOptions,
  bind: { readonly port: number; readonly ipv6Loopback: boolean },
): Promise<HttpServer> {
  const routes = adminRoutes(options)
  await using started = new AsyncDisposableStack()
  const first = started.use(await startHttpServer(routes, { ip: '127.0.0.1', port: bind.port }))
  if (bind.ipv6Loopback) started.use(await startHttpServer(routes, { ip: '::1', port: first.port }))
  const all = started.move()
  return { port: first.port, [Symbol.asyncDispose]: () => all.disposeAsync() }
}

/** `/metrics` and `/stats/prometheus` on a wildcard address. */
export function startStatsServer(registry: MetricsRegistry, bind: WildcardBind): Promise<HttpServer> {
  return startHttpServer(statsRoutes(registry), wildcard(bind))
}

export interface WildcardBind {
  readonly port: number
  readonly ipv6: boolean
}

const wildcard = ({ port, ipv6 }: WildcardBind) => ({ ip: ipv6 ? '::' : '0.0.0.0', port })
