// The embedded Kubernetes-compatible API: opens the state, serves HTTPS, and closes both again.
import { setMaxListeners } from 'node:events'
import { createSecureServer, type Http2SecureServer, type ServerHttp2Session } from 'node:http2'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import type { KindDefinition } from '../../api/index.ts'
import { type Access, attributesOf, createAccess } from './access.ts'
import { createInitialObjects } from './bootstrap.ts'
import { startEventExpiry } from './controllers/event-expiry.ts'
import { startGarbageCollection } from './controllers/garbage.ts'
import { startNamespaceDeletion } from './controllers/namespaces.ts'
import type { Core } from './core.ts'
import { ApiError, badRequest, pathNotFound } from './errors.ts'
import { asResponse, type Exchange, type HttpRequest } from './http/exchange.ts'
import { sendFailure } from './http/respond.ts'
import { internalApi } from './internal.ts'
import { createKindRegistry } from './kinds.ts'
import { createRequestMetrics, type RequestMetrics } from './metrics.ts'
import { parseTarget, verbOf } from './path.ts'
import { servePath } from './paths.ts'
import { type Routes, refuseWrongScope, serveResource } from './routes.ts'
import { ServiceAddresses } from './services/addresses.ts'
import { Store } from './store/store.ts'
import {
  admitConnect,
  isConnectRequest,
  type KubeletConnector,
  kubeletConnector,
  serveConnect,
  upgradeConnect,
} from './subresources/connect.ts'
import type { ApiCore, ApiExtension, ServerIdentity } from './types.ts'

export interface ApiServerOptions {
  /** The SQLite file. */
  readonly database: string
  readonly identity: ServerIdentity
  readonly listen: readonly { readonly host: string; readonly port: number }[]
  readonly serviceCidr: string
  /** Under which pods reach this server; by default the first listen address. */
  readonly advertiseAddress?: string
  readonly kinds: readonly KindDefinition[]
  readonly extensions: readonly ApiExtension[]
  readonly now?: () => Date
  /** Told of failures that no client sees. */
  readonly onError: (error: unknown) => void
}

export interface ApiServer extends AsyncDisposable {
  readonly api: ApiCore
  /** Where the server listens, in the order of `listen`, with the real ports. */
  readonly addresses: readonly { readonly host: string; readonly port: number }[]
}

/** Resolves when requests are served. Rejects when the state can't be opened or an address can't be bound. */
export async function startApiServer(options: ApiServerOptions): Promise<ApiServer> {
  const store = new Store(options.database, options.onError)
  const closing = new AbortController()
  // Every watch listens.
  setMaxListeners(0, closing.signal)
  const release: (() => Promise<void> | undefined)[] = [async () => store[Symbol.dispose]()]
  const close = async () => {
    closing.abort()
    for (const step of release.splice(0).reverse()) await step()
  }
  try {
    return await start(options, store, closing.signal, release, close)
  } catch (error) {
    await close()
    throw error
  }
}

async function start(
  options: ApiServerOptions,
  store: Store,
  closing: AbortSignal,
  release: (() => Promise<void> | undefined)[],
  close: () => Promise<void>,
): Promise<ApiServer> {
  const { extensions, identity } = options
  const kinds = createKindRegistry()
  kinds.register('built-in', options.kinds)
  for (const extension of extensions) kinds.register(extension.name, extension.kinds ?? [])
  const core: Core = {
    store,
    kinds,
    admission: extensions.flatMap((extension) => extension.admission ?? []),
    addresses: new ServiceAddresses(store, options.serviceCidr),
    now: options.now ?? (() => new Date()),
  }
  const api = internalApi(core)
  const access = createAccess(
    extensions.flatMap((extension) => extension.authenticators ?? []),
    extensions.flatMap((extension) => extension.authorizers ?? []),
  )
  const routes: Routes = { core, api, special: extensions.flatMap((extension) => extension.special ?? []), closing }
  const metrics = createRequestMetrics(store)
  const kubelets = kubeletConnector(core, identity.kubeletClient)
  const handler: Handler = { routes, access, metrics, kubelets, extensions, serverAddress: '', isReady: false }

  const addresses: { host: string; port: number }[] = []
  for (const address of options.listen) {
    const server = listener(identity, handler, options.onError)
    release.push(() => stopListening(server))
    addresses.push(await listenOn(server.server, address.host, address.port))
  }
  const [first] = addresses
  if (first === undefined) throw new Error('the API server needs at least one address to listen on')
  handler.serverAddress = `${first.host}:${first.port}`

  // These objects need no admission, and what admits writes needs some of them.
  await createInitialObjects(internalApi({ ...core, admission: [] }), core.addresses.apiAddress, {
    address: options.advertiseAddress ?? first.host,
    port: first.port,
  })
  for (const extension of extensions) {
    release.push(async () => {
      await extension.close?.()
    })
    await extension.start?.(api)
  }
  release.push(startGarbageCollection(core, api, options.onError))
  release.push(startNamespaceDeletion(core, api, options.onError))
  release.push(startEventExpiry(core, api, options.onError))
  handler.isReady = true
  return { api, addresses, [Symbol.asyncDispose]: close }
}

interface Handler {
  readonly routes: Routes
  readonly access: Access
  readonly metrics: RequestMetrics
  readonly kubelets: KubeletConnector
  readonly extensions: readonly ApiExtension[]
  serverAddress: string
  isReady: boolean
}

/** An idle HTTP/1.1 connection stays open for so long, as those of kube-apiserver do. */
const idleConnectionMs = 90_000

interface Listener {
  readonly server: Http2SecureServer
  readonly sessions: Set<ServerHttp2Session>
  readonly sockets: Set<Duplex>
}

function listener(identity: ServerIdentity, handler: Handler, onError: (error: unknown) => void): Listener {
  const server = createSecureServer({
    allowHTTP1: true,
    cert: identity.serving.certificate,
    key: identity.serving.key,
    ca: identity.clientCa,
    requestCert: true,
    rejectUnauthorized: false,
    minVersion: 'TLSv1.2',
    settings: { maxConcurrentStreams: 1000, initialWindowSize: 1024 * 1024 },
    http1Options: { keepAliveTimeout: idleConnectionMs },
  })
  const sessions = new Set<ServerHttp2Session>()
  const sockets = new Set<Duplex>()
  server.on('session', (session) => {
    sessions.add(session)
    session.on('close', () => sessions.delete(session))
    session.on('error', () => session.destroy())
  })
  server.on('secureConnection', (socket) => {
    sockets.add(socket)
    socket.setNoDelay(true)
    socket.on('close', () => sockets.delete(socket))
    socket.on('error', () => socket.destroy())
  })
  server.on('request', (request, response) => {
    void serve(handler, { request, response: asResponse(response), method: request.method ?? 'GET' }, onError)
  })
  server.on('upgrade', (request: HttpRequest, socket: Duplex, head: Buffer) => {
    upgrade(handler, request, socket, head).catch(onError)
  })
  return { server, sessions, sockets }
}

async function serve(
  handler: Handler,
  raw: Pick<Exchange, 'request' | 'response' | 'method'>,
  onError: (error: unknown) => void,
): Promise<void> {
  const started = performance.now()
  const exchange: Exchange = { ...raw, url: parseUrl(raw.request), warnings: [] }
  const target = parseTarget(exchange.url.pathname)
  const verb = verbOf(exchange.method, target, exchange.url.searchParams)
  let code = 200
  try {
    const isPublic = target.kind === 'path' && isPublicPath(handler, target.path)
    if (!isPublic) {
      const user = await handler.access.identify(exchange.request)
      await handler.access.require(attributesOf(user, verb, target, exchange.url.searchParams))
      if (target.kind === 'resource') {
        refuseWrongScope(handler.routes.core, target)
        if (isConnectRequest(target)) {
          await admitConnect(handler.routes.core, target, user, exchange.url.searchParams)
          await serveConnect(handler.kubelets, exchange, target)
        } else {
          if (verb === 'watch') exchange.response.on('close', handler.metrics.watchStarted(target))
          await serveResource(handler.routes, exchange, target, user)
        }
        return
      }
    }
    if (target.kind !== 'path') throw pathNotFound()
    await servePath({ ...handler, ...handler.routes }, exchange, target.path)
  } catch (error) {
    code = error instanceof ApiError ? error.code : 500
    if (!(error instanceof ApiError)) onError(error)
    sendFailure(exchange, error)
  } finally {
    handler.metrics.observe(verb, target, code, performance.now() - started)
  }
}

function isPublicPath(handler: Handler, path: string): boolean {
  return handler.extensions.some((extension) =>
    extension.paths?.some((one) => one.public === true && one.path === path),
  )
}

/** Upgrades are only for what goes on to a kubelet: exec, attach, port-forward, proxy. */
async function upgrade(handler: Handler, request: HttpRequest, socket: Duplex, head: Buffer): Promise<void> {
  try {
    const url = parseUrl(request)
    const target = parseTarget(url.pathname)
    const user = await handler.access.identify(request)
    if (target.kind !== 'resource' || !isConnectRequest(target)) throw badRequest('this path can not be upgraded to')
    // Whatever the method says, a stream into a pod counts as creating one.
    const verb = target.subresource === 'log' ? 'get' : 'create'
    await handler.access.require(attributesOf(user, verb, target, url.searchParams))
    refuseWrongScope(handler.routes.core, target)
    await admitConnect(handler.routes.core, target, user, url.searchParams)
    await upgradeConnect(handler.kubelets, { request, socket, head, url }, target)
  } catch (error) {
    const failure = error instanceof ApiError ? error : new ApiError(502, 'InternalError', String(error))
    const body = JSON.stringify(failure.toStatus())
    socket.end(
      `HTTP/1.1 ${failure.code} ${failure.reason}\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`,
    )
  }
}

function parseUrl(request: HttpRequest): URL {
  try {
    return new URL(request.url ?? '/', 'https://apiserver')
  } catch {
    return new URL('https://apiserver/')
  }
}

function listenOn(server: Http2SecureServer, host: string, port: number): Promise<{ host: string; port: number }> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, () => {
      server.off('error', reject)
      resolve({ host, port: (server.address() as AddressInfo).port })
    })
  })
}

async function stopListening({ server, sessions, sockets }: Listener): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()))
  for (const session of sessions) session.close()
  // Requests in flight get their answers; what stays open after that is cut.
  const cut = setTimeout(() => {
    for (const session of sessions) session.destroy()
    for (const socket of sockets) socket.destroy()
  }, 500)
  await closed
  clearTimeout(cut)
}
