// The process's own HTTP servers: metrics and readiness.
import { createServer, type RequestListener, type Server } from 'node:http'
import {
  expositionContentType,
  type MetricsRegistry,
  negotiateExposition,
  renderMetrics,
} from '../observability/index.ts'
import type { ZtunnelConfig } from './config/index.ts'
import type { Readiness } from './readiness.ts'

export interface ServersOptions {
  readonly config: Pick<ZtunnelConfig, 'statsPort' | 'readinessPort' | 'ipv6Enabled'>
  readonly registry: MetricsRegistry
  readonly readiness: Readiness
}

/** Binds every server, or rejects with none of them left. */
export async function startServers(options: ServersOptions): Promise<AsyncDisposable> {
  const { config, registry, readiness } = options
  const host = config.ipv6Enabled ? '::' : '0.0.0.0'
  await using started = new AsyncDisposableStack()
  started.use(await listen(serveReadiness(readiness), { host, port: config.readinessPort }))
  started.use(await listen(serveMetrics(registry), { host, port: config.statsPort }))
  return started.move()
}

function serveReadiness(readiness: Readiness): RequestListener {
  return (request, response) => {
    if (request.url !== '/healthz/ready') return void response.writeHead(404).end()
    if (request.method !== 'GET') return void response.writeHead(405).end()
    const pending = readiness.pending()
    if (pending.length === 0) response.end('ready\n')
    else response.writeHead(500).end(`not ready, pending: ${pending.join(', ')}\n`)
  }
}

function serveMetrics(registry: MetricsRegistry): RequestListener {
  return (request, response) => {
    if (request.url !== '/metrics' && request.url !== '/stats/prometheus') return void response.writeHead(404).end()
    const format = negotiateExposition(request.headers.accept)
    response.writeHead(200, { 'content-type': expositionContentType[format] }).end(renderMetrics(registry, format))
  }
}

function listen(handle: RequestListener, address: { host: string; port: number }): Promise<AsyncDisposable> {
  return new Promise((resolve, reject) => {
    const server: Server = createServer(handle)
    server.once('error', (error) =>
      reject(new Error(`failed to bind to address ${address.host}:${address.port}: ${error.message}`)),
    )
    server.listen(address, () =>
      resolve({
        async [Symbol.asyncDispose]() {
          server.closeAllConnections()
          await new Promise((closed) => server.close(closed))
        },
      }),
    )
  })
}
