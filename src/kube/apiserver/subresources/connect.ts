// What a node's kubelet answers: logs, and the streams of exec, attach and port-forward, passed through as they are.
import type { IncomingMessage } from 'node:http'
import { Agent, request as httpsRequest } from 'node:https'
import type { Duplex } from 'node:stream'
import type { KubeObject } from '../../../api/index.ts'
import type { Core } from '../core.ts'
import { ApiError, badRequest, notFound } from '../errors.ts'
import type { Exchange, HttpRequest } from '../http/exchange.ts'
import { valueAt } from '../json.ts'
import type { ResourceTarget } from '../routes.ts'
import type { AdmissionRequest, AuthenticatedUser, ServerIdentity } from '../types.ts'

export interface KubeletConnector {
  readonly core: Core
  readonly identity: ServerIdentity['kubeletClient']
  readonly agent: Agent
}

export function kubeletConnector(core: Core, identity: ServerIdentity['kubeletClient']): KubeletConnector {
  return { core, identity, agent: new Agent({ keepAlive: false }) }
}

const streams = new Set(['exec', 'attach', 'portforward'])

export function isConnectRequest(target: ResourceTarget): boolean {
  if (target.group !== '' || target.version !== 'v1' || target.name === undefined) return false
  if (target.plural === 'nodes') return target.subresource === 'proxy'
  return target.plural === 'pods' && (target.subresource === 'log' || streams.has(target.subresource ?? ''))
}

interface KubeletTarget {
  readonly host: string
  readonly port: number
  readonly path: string
}

interface PodShape {
  readonly spec?: {
    readonly nodeName?: string
    readonly containers?: readonly { readonly name: string }[]
    readonly initContainers?: readonly { readonly name: string }[]
    readonly ephemeralContainers?: readonly { readonly name: string }[]
  }
}

/** Throws ApiError 400 or 404 with what the user can do about it. */
function locate(core: Core, target: ResourceTarget, query: URLSearchParams): KubeletTarget {
  const name = target.name ?? ''
  if (target.plural === 'nodes') {
    const text = query.toString()
    return { ...addressOf(core, name), path: `/${target.rest ?? ''}${text === '' ? '' : `?${text}`}` }
  }
  const namespace = target.namespace ?? ''
  const pod = core.store.get('/pods', namespace, name)?.object as (KubeObject & PodShape) | undefined
  if (pod === undefined) throw notFound({ group: '', plural: 'pods' }, name)
  const node = pod.spec?.nodeName ?? ''
  if (node === '') throw badRequest(`pod ${name} does not have a host assigned`)
  return { ...addressOf(core, node), path: kubeletPath(target, pod, query) }
}

function kubeletPath(target: ResourceTarget, pod: KubeObject & PodShape, query: URLSearchParams): string {
  const place = [target.namespace, target.name].map((part) => encodeURIComponent(part ?? '')).join('/')
  const passed = new URLSearchParams(query)
  passed.delete('container')
  switch (target.subresource) {
    case 'log':
      return `/containerLogs/${place}/${containerOf(pod, query)}?${passed}`
    case 'portforward':
      return `/portForward/${place}?${passed}`
    default: {
      const kubeletQuery = new URLSearchParams()
      for (const command of query.getAll('command')) kubeletQuery.append('command', command)
      for (const [ours, theirs] of [
        ['stdin', 'input'],
        ['stdout', 'output'],
        ['stderr', 'error'],
        ['tty', 'tty'],
      ] as const) {
        if (['true', '1'].includes(query.get(ours) ?? '')) kubeletQuery.set(theirs, '1')
      }
      return `/${target.subresource}/${place}/${containerOf(pod, query)}?${kubeletQuery}`
    }
  }
}

function containerOf(pod: KubeObject & PodShape, query: URLSearchParams): string {
  const { containers = [], initContainers = [], ephemeralContainers = [] } = pod.spec ?? {}
  const all = [...containers, ...initContainers, ...ephemeralContainers].map((container) => container.name)
  const { name } = pod.metadata
  const asked = query.get('container') ?? ''
  if (asked !== '') {
    if (!all.includes(asked)) throw badRequest(`container ${asked} is not valid for pod ${name}`)
    return encodeURIComponent(asked)
  }
  const preferred = pod.metadata.annotations?.['kubectl.kubernetes.io/default-container']
  const [only] = containers
  if (preferred !== undefined && all.includes(preferred)) return encodeURIComponent(preferred)
  if (containers.length === 1 && only !== undefined) return encodeURIComponent(only.name)
  const names = containers.map((container) => container.name).join(' ')
  throw badRequest(`a container name must be specified for pod ${name}, choose one of: [${names}]`)
}

function addressOf(core: Core, nodeName: string): { host: string; port: number } {
  const node = core.store.get('/nodes', '', nodeName)?.object
  if (node === undefined) throw notFound({ group: '', plural: 'nodes' }, nodeName)
  const addresses = valueAt(node, ['status', 'addresses'])
  const internal = (Array.isArray(addresses) ? addresses : []).find((one) => one.type === 'InternalIP')
  const port = valueAt(node, ['status', 'daemonEndpoints', 'kubeletEndpoint', 'Port'])
  if (typeof internal?.address !== 'string' || typeof port !== 'number' || port === 0) {
    throw new ApiError(503, 'ServiceUnavailable', `node ${nodeName} has not told the address of its kubelet yet`)
  }
  return { host: internal.address, port }
}

const notForwarded = new Set(['authorization', 'host', 'cookie', 'connection', 'content-length', 'transfer-encoding'])

/** The client's headers without what only concerns this hop; repeated ones stay repeated. */
function forwardedHeaders(request: HttpRequest): Record<string, string[]> {
  const headers: Record<string, string[]> = {}
  for (let index = 0; index + 1 < request.rawHeaders.length; index += 2) {
    const key = request.rawHeaders[index]?.toLowerCase() ?? ''
    if (notForwarded.has(key) || key.startsWith(':') || key.startsWith('impersonate-')) continue
    headers[key] = [...(headers[key] ?? []), request.rawHeaders[index + 1] ?? '']
  }
  return headers
}

function kubeletRequest(
  connector: KubeletConnector,
  place: KubeletTarget,
  method: string,
  headers: Record<string, string[]>,
) {
  const { certificate: cert, key, ca } = connector.identity
  return httpsRequest({ ...place, method, headers, cert, key, ca, agent: connector.agent })
}

function unreachable(place: KubeletTarget, cause: Error): ApiError {
  const message = `the kubelet at ${place.host}:${place.port} can not be reached: ${cause.message}`
  return new ApiError(502, 'InternalError', message, undefined, cause)
}

/** Lets admission refuse a connection to what a pod or node runs, with the query as its options object. */
export async function admitConnect(
  core: Core,
  target: ResourceTarget,
  user: AuthenticatedUser,
  query: URLSearchParams,
): Promise<void> {
  const kind = core.kinds.find(target.group, target.version, target.plural)
  const { subresource, name = '', namespace } = target
  const optionsKind = connectOptions.get(`${target.plural}/${subresource}`)
  if (kind === undefined || optionsKind === undefined) return
  const options = Object.fromEntries(
    [...query.keys()].map((key) => [key, key === 'command' ? query.getAll(key) : query.get(key)]),
  )
  const request: AdmissionRequest = {
    operation: 'CONNECT',
    kind,
    name,
    user,
    dryRun: false,
    options: {},
    warnings: [],
    object: { apiVersion: 'v1', kind: optionsKind, metadata: { name: '' }, ...options },
    ...(subresource === undefined ? {} : { subresource }),
    ...(namespace === undefined ? {} : { namespace }),
  }
  for (const plugin of core.admission) await plugin.mutate?.(request)
  for (const plugin of core.admission) await plugin.validate?.(request)
}

const connectOptions: ReadonlyMap<string, string> = new Map([
  ['pods/exec', 'PodExecOptions'],
  ['pods/attach', 'PodAttachOptions'],
  ['pods/portforward', 'PodPortForwardOptions'],
  ['nodes/proxy', 'NodeProxyOptions'],
])

/** Passes a plain request on (logs, node proxy) and its answer back, at the client's pace. */
export async function serveConnect(
  connector: KubeletConnector,
  exchange: Exchange,
  target: ResourceTarget,
): Promise<void> {
  if (streams.has(target.subresource ?? '')) throw badRequest('Upgrade request required')
  const place = locate(connector.core, target, exchange.url.searchParams)
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    const request = kubeletRequest(connector, place, exchange.method, forwardedHeaders(exchange.request))
    request.on('response', resolve)
    request.on('error', (cause) => reject(unreachable(place, cause)))
    exchange.response.on('close', () => request.destroy())
    exchange.request.pipe(request)
  })
  const { response } = exchange
  if (target.subresource === 'log' && answer.statusCode !== 200) throw await kubeletRefusal(answer)
  response.writeHead(answer.statusCode ?? 502, { 'content-type': answer.headers['content-type'] ?? 'text/plain' })
  response.flushHeaders()
  answer.on('error', () => exchange.request.destroy())
  await new Promise<void>((resolve) => {
    response.on('close', resolve)
    answer.on('data', (chunk: Buffer) => {
      if (!response.write(chunk)) answer.pause()
    })
    response.on('drain', () => answer.resume())
    answer.on('end', () => response.end())
  })
}

async function kubeletRefusal(answer: IncomingMessage): Promise<ApiError> {
  let text = ''
  for await (const chunk of answer) text = (text + String(chunk)).slice(0, 4096)
  const code = answer.statusCode ?? 502
  return new ApiError(code, code === 404 ? 'NotFound' : code === 400 ? 'BadRequest' : 'InternalError', text.trim())
}

export interface Upgrade {
  readonly request: HttpRequest
  readonly socket: Duplex
  readonly head: Buffer
  readonly url: URL
}

/** Passes an upgrade (WebSocket or SPDY) on and joins the two connections. Rejects when the kubelet can't be reached. */
export async function upgradeConnect(
  connector: KubeletConnector,
  upgrade: Upgrade,
  target: ResourceTarget,
): Promise<void> {
  const { request, socket, head, url } = upgrade
  const place = locate(connector.core, target, url.searchParams)
  const headers = { ...forwardedHeaders(request), connection: ['Upgrade'] }
  await new Promise<void>((resolve, reject) => {
    const outgoing = kubeletRequest(connector, place, request.method ?? 'GET', headers)
    outgoing.on('error', (cause) => reject(unreachable(place, cause)))
    outgoing.on('upgrade', (answer, kubelet, kubeletHead) => {
      socket.write(answerHead(answer))
      if (kubeletHead.length > 0) socket.write(kubeletHead)
      if (head.length > 0) kubelet.write(head)
      join(socket, kubelet)
      resolve()
    })
    outgoing.on('response', (answer) => {
      // Refused: the plain answer goes back, and the connection ends with it.
      socket.write(answerHead(answer))
      answer.pipe(socket)
      resolve()
    })
    socket.on('close', () => outgoing.destroy())
    outgoing.end()
  })
}

function answerHead(answer: IncomingMessage): string {
  const lines = [`HTTP/1.1 ${answer.statusCode} ${answer.statusMessage}`]
  const isUpgrade = answer.statusCode === 101
  for (let index = 0; index + 1 < answer.rawHeaders.length; index += 2) {
    const key = answer.rawHeaders[index] ?? ''
    // The body of a refusal was unchunked on its way here.
    if (!isUpgrade && ['connection', 'transfer-encoding', 'keep-alive'].includes(key.toLowerCase())) continue
    lines.push(`${key}: ${answer.rawHeaders[index + 1]}`)
  }
  if (!isUpgrade) lines.push('Connection: close')
  return `${lines.join('\r\n')}\r\n\r\n`
}

function join(a: Duplex, b: Duplex): void {
  for (const [from, to] of [
    [a, b],
    [b, a],
  ] as const) {
    from.pipe(to)
    from.on('error', () => to.destroy())
    // Ended, not destroyed: what is still on its way to the other side arrives.
    from.on('close', () => to.end())
  }
}
