// The HTTP ports of the process: readiness, metrics, debug pages, introspection. They answer from the start on.
import type { Graph } from '../collections/index.ts'
import {
  expositionContentType,
  type Logging,
  type MetricsRegistry,
  negotiateExposition,
  renderMetrics,
  type Scope,
} from '../observability/index.ts'
import { type HttpServer, jsonReply, type Route, serveHttp, textReply } from './http-server.ts'
import { introspectionRoutes } from './introspection.ts'
import type { DiscoverySettings } from './settings.ts'

export interface ProcessPagesOptions {
  readonly settings: Pick<
    DiscoverySettings,
    'httpAddress' | 'debugOnHttp' | 'monitoringAddress' | 'introspectionAddress'
  >
  readonly version: string
  readonly metrics: MetricsRegistry
  readonly logging: Logging
  readonly log: Scope
  readonly isReady: () => boolean
  /** Undefined until the model is there. */
  readonly graph: () => Graph | undefined
  /** The page below `/debug`. */
  readonly debug: (path: string) => Route | undefined
  /** Ends the process in order. */
  readonly exit: () => void
}

/** Where each port is that is on; rejects when one cannot be opened. */
export async function servePages(
  options: ProcessPagesOptions,
  stack: AsyncDisposableStack,
): Promise<readonly string[]> {
  const { settings, version, metrics, log } = options
  const ready: Route = () => (options.isReady() ? textReply(200, '') : textReply(503, 'not ready\n'))
  const debug = (path: string) => (/^\/debug(\/|$)/.test(path) ? options.debug(path) : undefined)
  const failed = (error: unknown) => log.error('an HTTP request failed', { reason: String(error) })
  const metricsPage: Route = async (request) => {
    const format = negotiateExposition(request.headers.accept)
    return { status: 200, body: await renderMetrics(metrics, format), contentType: expositionContentType[format] }
  }

  async function serve(address: string, route: (path: string) => Route | undefined, methods?: ['GET', 'HEAD', 'PUT']) {
    if (address === '') return []
    const server: HttpServer = await serveHttp(address, route, failed, methods)
    stack.defer(() => server.close())
    return [server.address]
  }

  return [
    ...(await serve(settings.httpAddress, (path) =>
      path === '/ready' ? ready : settings.debugOnHttp ? debug(path) : undefined,
    )),
    ...(await serve(settings.monitoringAddress, (path) =>
      path === '/metrics' ? metricsPage : path === '/version' ? () => jsonReply({ version }) : debug(path),
    )),
    ...(await serve(
      settings.introspectionAddress,
      introspectionRoutes({
        logging: options.logging,
        graph: options.graph,
        version,
        startedAt: new Date(),
        exit: options.exit,
      }),
      ['GET', 'HEAD', 'PUT'],
    )),
  ]
}
