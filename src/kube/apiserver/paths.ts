// Paths outside the resource tree: discovery, health, version, metrics, and what extensions serve.
import { aggregatedForm, discoveryDocument } from './discovery.ts'
import { ApiError, methodNotAllowed, pathNotFound } from './errors.ts'
import type { Exchange } from './http/exchange.ts'
import { headersOf, sendObject } from './http/respond.ts'
import type { RequestMetrics } from './metrics.ts'
import type { ApiCore, ApiExtension, PathResponse } from './types.ts'

export interface PathContext {
  readonly api: ApiCore
  readonly extensions: readonly ApiExtension[]
  readonly metrics: RequestMetrics
  readonly serverAddress: string
  readonly isReady: boolean
}

/** The Kubernetes version whose behaviour this API follows; clients decide by it which features to use. */
const followedVersion = { major: '1', minor: '32', gitVersion: 'v1.32.0+lateen' }

export async function servePath(context: PathContext, exchange: Exchange, path: string): Promise<void> {
  const handler = context.extensions
    .flatMap((extension) => extension.paths ?? [])
    .find((one) => one.path === path || (one.path.endsWith('/') && path.startsWith(one.path)))
  if (handler !== undefined) {
    const { method, request, url } = exchange
    const { headers } = request
    return send(exchange, await handler.handle({ method, path, headers, query: url.searchParams, core: context.api }))
  }
  if (exchange.method !== 'GET' && exchange.method !== 'HEAD') {
    throw knownPath(path) ? methodNotAllowed() : pathNotFound()
  }
  const [root] = path.split('/').filter((part) => part !== '')
  switch (root) {
    case 'api':
    case 'apis':
      return sendDiscovery(context, exchange, path)
    case 'healthz':
    case 'livez':
      return send(exchange, text(200, 'ok'))
    case 'readyz':
      return send(exchange, context.isReady ? text(200, 'ok') : text(503, 'starting'))
    case 'version':
      return sendObject(exchange, 200, versionDocument())
    case 'metrics':
      return send(exchange, {
        status: 200,
        contentType: 'text/plain; version=0.0.4; charset=utf-8',
        body: await context.metrics.text(),
      })
    case undefined:
      return sendObject(exchange, 200, { paths: listedPaths(context) })
    default:
      throw pathNotFound()
  }
}

function knownPath(path: string): boolean {
  return /^\/(api|apis|healthz|livez|readyz|version|metrics)(\/|$)/.test(path)
}

function sendDiscovery(context: PathContext, exchange: Exchange, path: string): void {
  const isRoot = /^\/apis?\/?$/.test(path)
  const form = isRoot ? aggregatedForm(exchange.request.headers.accept) : undefined
  const document = discoveryDocument(context.api.kinds, path, form?.version, context.serverAddress)
  const body = JSON.stringify(document)
  send(exchange, {
    status: 200,
    contentType: form?.contentType ?? 'application/json',
    headers: { vary: 'Accept' },
    body,
  })
}

function versionDocument(): object {
  return {
    ...followedVersion,
    gitCommit: '',
    gitTreeState: 'clean',
    buildDate: '1970-01-01T00:00:00Z',
    goVersion: process.version,
    compiler: 'node',
    platform: `${process.platform}/${process.arch === 'x64' ? 'amd64' : process.arch}`,
  }
}

function listedPaths({ api, extensions }: PathContext): string[] {
  const groups = api.kinds
    .list()
    .filter((kind) => kind.group !== '')
    .flatMap((kind) => [`/apis/${kind.group}`, `/apis/${kind.group}/${kind.version}`])
  const own = ['/api', '/api/v1', '/apis', '/healthz', '/livez', '/metrics', '/readyz', '/version']
  const extended = extensions.flatMap((extension) => extension.paths ?? []).map((handler) => handler.path)
  return [...new Set([...own, ...groups, ...extended])].sort()
}

function text(status: number, body: string): PathResponse {
  return { status, contentType: 'text/plain; charset=utf-8', body }
}

function send(exchange: Exchange, answer: PathResponse): void {
  const { response } = exchange
  if (response.headersSent) throw new ApiError(500, 'InternalError', 'the response has already begun')
  const bytes = typeof answer.body === 'string' ? Buffer.from(answer.body) : answer.body
  response.writeHead(answer.status, {
    ...headersOf(exchange, answer.contentType),
    'content-length': String(bytes.length),
    ...answer.headers,
  })
  response.end(exchange.method === 'HEAD' ? undefined : bytes)
}
