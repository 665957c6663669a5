// For tests: a small API server over HTTPS for one kind of object, with the ways in which a real one fails.
import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer, type Server } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import type { TestPki } from '../../test/support/test-pki.ts'
import type { KubeObject } from '../api/index.ts'

type Stored = KubeObject<{ value: number }>

export interface TestApi {
  readonly url: string
  readonly port: number
  /** What happened, in order: `list`, `watch <resourceVersion>`, `GET <path>` … */
  readonly requests: string[]
  readonly watchers: number
  put(name: string, value: number, uid?: string): void
  remove(name: string): void
  /** Forgets the history: watches from older versions get 410. `inStream` sends it as an event of an accepted watch. */
  compact(options?: { inStream?: boolean }): void
  /** Breaks every connection in the middle of what it says. */
  cut(): void
  /** Sends a bookmark to every watcher. */
  bookmark(): void
  endWatches(): void
  /** Answers requests by this status until it is set to undefined. */
  failWith: number | undefined
  /** Answers watches, and nothing else, by this status and message until it is set to undefined. */
  refuseWatches: { readonly code: number; readonly message: string } | undefined
  /** Requests answered by `failWith`. */
  readonly refused: number
  /** What failing answers ask clients to wait, in seconds. */
  retryAfterSeconds: number | undefined
  /** Where they say so: in a Status, or in a header of a text, as servers that have no room do. */
  retryAfterIn: 'status' | 'header'
  /** Takes requests for this and never answers; half: answers lists with half of a page. */
  silentOn: 'watch' | 'list' | 'half' | undefined
  /** The state of some time ago, with lower versions: as after a restore. */
  restore(names: readonly string[]): void
  /** The bearer token that is accepted. */
  token: string
  stop(): Promise<void>
  start(): Promise<void>
  names(): string[]
}

interface Happening {
  readonly version: number
  readonly line: string
}

const base = '/apis/example.com/v1'
const objectBase = `${base}/widgets/`

export async function startTestApi(pki: TestPki): Promise<TestApi> {
  const { privateKey, chain } = await pki.issue('localhost', '127.0.0.1')
  const objects = new Map<string, Stored>()
  const history: Happening[] = []
  const watchers = new Set<ServerResponse>()
  const sockets = new Set<Socket>()
  const requests: string[] = []
  let version = 100
  let oldest = 0
  let goneInStream = false
  let refused = 0
  let port = 0
  let server: Server | undefined

  function happen(type: string, object: Stored): void {
    const line = `${JSON.stringify({ type, object })}\n`
    history.push({ version, line })
    for (const watcher of watchers) watcher.write(line)
  }

  function status(response: ServerResponse, code: number, reason: string, message?: string, name?: string): undefined {
    const { retryAfterSeconds } = api
    if (api.retryAfterIn === 'header' && retryAfterSeconds !== undefined) {
      const headers = { 'content-type': 'text/plain; charset=utf-8', 'retry-after': String(retryAfterSeconds) }
      response.writeHead(code, headers).end('come again later\n')
      return
    }
    const details = { ...(retryAfterSeconds && { retryAfterSeconds }), ...(name && { name }) }
    const said = { code, reason, message: message ?? `test says ${reason}`, details }
    const body = { kind: 'Status', apiVersion: 'v1', status: 'Failure', ...said }
    response.writeHead(code, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  }

  function list(url: URL, response: ServerResponse): undefined {
    requests.push('list')
    if (api.silentOn === 'list') return undefined
    if (api.silentOn === 'half') {
      response.writeHead(200, { 'content-type': 'application/json' }).write('{"items":[{"metadata":')
      return undefined
    }
    const limit = Number(url.searchParams.get('limit') ?? 0)
    const [at = '0', snapshot = ''] = (url.searchParams.get('continue') ?? '').split('@')
    if (snapshot !== '' && Number(snapshot) < oldest) return status(response, 410, 'Expired')
    const all = [...objects.values()].sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1))
    const from = Number(at)
    const page = limit === 0 ? all : all.slice(from, from + limit)
    const more = limit !== 0 && from + limit < all.length
    const items = page.map(({ apiVersion: _v, kind: _k, ...rest }) => rest)
    const metadata = { resourceVersion: String(version), ...(more ? { continue: `${from + limit}@${version}` } : {}) }
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ kind: 'WidgetList', apiVersion: 'example.com/v1', metadata, items }))
  }

  function watch(url: URL, response: ServerResponse): undefined {
    const from = Number(url.searchParams.get('resourceVersion'))
    requests.push(`watch ${from}`)
    if (api.silentOn === 'watch') return undefined
    if (api.refuseWatches !== undefined)
      return status(response, api.refuseWatches.code, 'No', api.refuseWatches.message)
    if (from > version)
      return status(response, 504, 'Timeout', `Too large resource version: ${from}, current: ${version}`)
    if (from < oldest && !goneInStream) return status(response, 410, 'Expired')
    response.writeHead(200, { 'content-type': 'application/json' })
    if (from < oldest) {
      const object = { kind: 'Status', code: 410, reason: 'Expired', message: 'too old resource version' }
      response.end(`${JSON.stringify({ type: 'ERROR', object })}\n`)
      return undefined
    }
    response.flushHeaders()
    for (const { version: at, line } of history) if (at > from) response.write(line)
    watchers.add(response)
    response.on('close', () => watchers.delete(response))
  }

  function handle(request: IncomingMessage, response: ServerResponse): undefined {
    const url = new URL(request.url ?? '/', 'https://localhost')
    if (api.failWith !== undefined) refused += 1
    if (api.failWith !== undefined) return status(response, api.failWith, 'Failing')
    if (request.headers.authorization !== `Bearer ${api.token}`) return status(response, 401, 'Unauthorized')
    if (url.pathname === base) {
      requests.push('discovery')
      const resources = [
        { name: 'widgets', kind: 'Widget', namespaced: false },
        { name: 'widgets/status', kind: 'Widget', namespaced: false },
      ]
      response.end(JSON.stringify({ kind: 'APIResourceList', resources }))
      return undefined
    }
    if (url.pathname === `${base}/widgets`) {
      return url.searchParams.get('watch') === 'true' ? watch(url, response) : list(url, response)
    }
    requests.push(
      `${request.method} ${url.pathname.replace(objectBase, '')} ${request.headers['content-type'] ?? ''}`.trim(),
    )
    if (!url.pathname.startsWith(objectBase)) {
      // As of every path that a server does not know.
      response.writeHead(404, { 'content-type': 'text/plain; charset=utf-8' }).end('404 page not found\n')
      return undefined
    }
    const name = url.pathname.slice(objectBase.length)
    const object = objects.get(name)
    if (object === undefined) return status(response, 404, 'NotFound', undefined, name)
    if (request.method === 'DELETE') api.remove(name)
    response.end(JSON.stringify(object))
  }

  const api: TestApi = {
    requests,
    failWith: undefined,
    refuseWatches: undefined,
    retryAfterSeconds: undefined,
    retryAfterIn: 'status',
    silentOn: undefined,
    token: 'good',
    get url() {
      return `https://localhost:${port}`
    },
    get port() {
      return port
    },
    get refused() {
      return refused
    },
    get watchers() {
      return watchers.size
    },
    put(name, value, uid) {
      version += 1
      const old = objects.get(name)
      const object: Stored = {
        apiVersion: 'example.com/v1',
        kind: 'Widget',
        metadata: { name, uid: uid ?? old?.metadata.uid ?? `uid-${version}`, resourceVersion: String(version) },
        spec: { value },
      }
      objects.set(name, object)
      happen(old === undefined ? 'ADDED' : 'MODIFIED', object)
    },
    remove(name) {
      const old = objects.get(name)
      if (old === undefined) return
      version += 1
      objects.delete(name)
      happen('DELETED', { ...old, metadata: { ...old.metadata, resourceVersion: String(version) } })
    },
    compact({ inStream = false } = {}) {
      oldest = version + 1
      version += 1
      goneInStream = inStream
      history.length = 0
    },
    restore(names) {
      version = 50
      oldest = 0
      history.length = 0
      for (const name of [...objects.keys()]) if (!names.includes(name)) objects.delete(name)
    },
    cut() {
      for (const watcher of watchers) {
        watcher.write('{"type":"MODIFIED","object":{"metadata":{"name":"half')
        setImmediate(() => watcher.destroy())
      }
    },
    bookmark() {
      const object = { kind: 'Widget', metadata: { resourceVersion: String(version) } }
      for (const watcher of watchers) watcher.write(`${JSON.stringify({ type: 'BOOKMARK', object })}\n`)
    },
    endWatches() {
      for (const watcher of watchers) watcher.end()
    },
    async start() {
      server = createServer({ key: privateKey, cert: chain }, handle)
      server.on('connection', (socket: Socket) => {
        sockets.add(socket)
        socket.on('close', () => sockets.delete(socket))
      })
      server.listen(port, 'localhost')
      await once(server, 'listening')
      port = (server.address() as AddressInfo).port
    },
    async stop() {
      const stopping = server
      server = undefined
      if (stopping === undefined) return
      stopping.close()
      // Those in the middle of a handshake are not yet known to the HTTP server.
      for (const socket of sockets) socket.destroy()
      await once(stopping, 'close')
    },
    names: () => [...objects.keys()].sort(),
  }
  await api.start()
  return api
}
