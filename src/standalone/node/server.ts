// The node's HTTPS port, as a kubelet has it: logs, exec, port forwarding and the list of pods, for the API server only.
import type { IncomingMessage, ServerResponse } from 'node:http'
import https from 'node:https'
import type { Duplex } from 'node:stream'
import { TLSSocket } from 'node:tls'
import { WebSocketServer } from 'ws'
import type { IssuedCertificate } from '../../kube/index.ts'
import { execInContainer } from './exec.ts'
import { execProtocols, joinExec } from './exec-socket.ts'
import { type LogOptions, writeLog } from './logs.ts'
import type { PodContainer } from './pod-container.ts'
import type { PodWorker } from './pod-worker.ts'
import { joinPorts, podDialer } from './port-forward.ts'
import type { PodRuntime } from './runtime.ts'

export interface NodeServerOptions {
  readonly ips: readonly string[]
  readonly port: number
  readonly serving: IssuedCertificate
  /** Signs the client certificates that are let in. */
  readonly clientCa: string
  readonly runtime: PodRuntime
  readonly healthy: () => boolean
}

/** What the request asks for cannot be done; the text is the answer. */
class Refusal extends Error {
  readonly code: number
  constructor(code: number, message: string) {
    super(message)
    this.code = code
  }
}

const allowedGroups = new Set(['system:masters'])

export async function startNodeServer(options: NodeServerOptions): Promise<AsyncDisposable> {
  const sockets = new WebSocketServer({
    noServer: true,
    handleProtocols: (offered) => execProtocols.find((protocol) => offered.has(protocol)) ?? false,
  })
  const servers = options.ips.map((host) => {
    const server = https.createServer(
      {
        cert: options.serving.certificate,
        key: options.serving.key,
        ca: options.clientCa,
        requestCert: true,
        rejectUnauthorized: true,
      },
      (request, response) => void answer(options, request, response),
    )
    server.on('upgrade', (request, socket, head) => {
      void upgrade(options, sockets, request, socket, head).catch((error: Error) => refuseUpgrade(socket, error))
    })
    return { server, host }
  })
  for (const { server, host } of servers) {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    server.once('error', reject)
    server.listen(options.port, host, resolve)
    await promise
  }
  return {
    async [Symbol.asyncDispose]() {
      for (const client of sockets.clients) client.terminate()
      sockets.close()
      for (const { server } of servers) {
        server.closeAllConnections()
        await new Promise((resolve) => server.close(resolve))
      }
    },
  }
}

async function answer(options: NodeServerOptions, request: IncomingMessage, response: ServerResponse): Promise<void> {
  try {
    checkCaller(request.socket)
    const url = new URL(request.url ?? '/', 'https://node')
    const [, area, ...rest] = url.pathname.split('/').map(decodeURIComponent)
    if (request.method !== 'GET') throw new Refusal(405, 'only GET is served here')
    if (area === 'healthz') {
      if (!options.healthy()) throw new Refusal(500, 'not healthy')
      response.end('ok')
    } else if (area === 'pods') {
      const items = options.runtime.pods().map((worker) => worker.pod)
      response.setHeader('content-type', 'application/json')
      response.end(JSON.stringify({ kind: 'PodList', apiVersion: 'v1', metadata: {}, items }))
    } else if (area === 'containerLogs') await answerLogs(options, rest, url.searchParams, response)
    else throw new Refusal(404, `no such path: ${url.pathname}`)
  } catch (error) {
    if (!response.headersSent) response.writeHead(error instanceof Refusal ? error.code : 500)
    response.end((error as Error).message)
  }
}

/** Only the API server (group system:masters of its client certificate) may ask. @throws Refusal */
function checkCaller(socket: unknown): void {
  const certificate = socket instanceof TLSSocket && socket.authorized ? socket.getPeerCertificate() : undefined
  const groups = [certificate?.subject?.O ?? []].flat()
  if (!groups.some((group) => allowedGroups.has(group))) throw new Refusal(403, 'this certificate gives no right here')
}

async function answerLogs(
  options: NodeServerOptions,
  path: readonly string[],
  query: URLSearchParams,
  response: ServerResponse,
): Promise<void> {
  const { container } = locate(options.runtime, path)
  const previous = query.get('previous') === 'true'
  const file = container.logFile(previous)
  if (file === undefined) {
    const why = previous
      ? 'previous terminated container not found'
      : `is waiting to start: ${container.waiting?.reason ?? 'ContainerCreating'}`
    throw new Refusal(400, `container "${container.name}" ${why}`)
  }
  const gone = new AbortController()
  response.once('close', () => gone.abort())
  const window = logWindow(query)
  response.writeHead(200, { 'content-type': 'text/plain' })
  response.flushHeaders()
  await writeLog(file, response, {
    follow: query.get('follow') === 'true' && !previous,
    signal: gone.signal,
    running: () => container.running !== undefined && container.logFile() === file,
    ...window,
  })
  response.end()
}

/** Which part of a log is asked for, and how. @throws Refusal */
function logWindow(query: URLSearchParams): Pick<LogOptions, 'tailLines' | 'limitBytes' | 'sinceMs' | 'timestamps'> {
  const number = (name: string, least: number) => {
    const text = query.get(name)
    if (text === null) return undefined
    const value = Number(text)
    if (text === '' || !Number.isInteger(value) || value < least) {
      throw new Refusal(400, `${name} is "${text}": expected a whole number from ${least}`)
    }
    return value
  }
  const tailLines = number('tailLines', 0)
  const limitBytes = number('limitBytes', 1)
  const sinceSeconds = number('sinceSeconds', 1)
  const sinceTime = query.get('sinceTime')
  if (sinceSeconds !== undefined && sinceTime !== null) {
    throw new Refusal(400, 'at most one of sinceTime and sinceSeconds may be given')
  }
  const sinceMs = sinceTime !== null ? Date.parse(sinceTime) : sinceSeconds && Date.now() - sinceSeconds * 1000
  if (Number.isNaN(sinceMs))
    throw new Refusal(400, `sinceTime is "${sinceTime}": expected a time as 2026-01-31T12:00:00Z`)
  return {
    ...(tailLines === undefined ? {} : { tailLines }),
    ...(limitBytes === undefined ? {} : { limitBytes }),
    ...(sinceMs === undefined ? {} : { sinceMs }),
    ...(['true', '1'].includes(query.get('timestamps') ?? '') && { timestamps: true }),
  }
}

async function upgrade(
  options: NodeServerOptions,
  sockets: WebSocketServer,
  request: IncomingMessage,
  socket: Duplex,
  head: Buffer,
): Promise<void> {
  checkCaller(request.socket)
  if (request.headers.upgrade?.toLowerCase() !== 'websocket') {
    // No colon and space: kubectl would take the text for YAML, and show nothing of it.
    const isForward = (request.url ?? '').startsWith('/portForward/')
    throw new Refusal(
      400,
      isForward
        ? 'kubectl port-forward is not served here, reach the port from within by kubectl exec or lateen exec'
        : 'only WebSocket is served here (kubectl 1.30 or newer, or lateen exec)',
    )
  }
  const url = new URL(request.url ?? '/', 'https://node')
  const [, area, ...rest] = url.pathname.split('/').map(decodeURIComponent)
  if (area === 'exec') {
    const { container } = locate(options.runtime, rest)
    const process = container.running
    if (process === undefined) throw new Refusal(400, `container ${container.name} is not running`)
    const argv = url.searchParams.getAll('command')
    if (argv.length === 0) throw new Refusal(400, 'you must specify a command')
    const child = await execInContainer(process, { argv, tty: url.searchParams.get('tty') === '1' })
    if (url.searchParams.get('input') !== '1') child.stdin?.end()
    sockets.handleUpgrade(request, socket, head, (joined) => joinExec(joined, child))
  } else if (area === 'portForward') {
    const worker = locatePod(options.runtime, rest)
    const ports = url.searchParams
      .getAll('port')
      .concat(url.searchParams.getAll('ports'))
      .flatMap((text) => text.split(','))
      .map(Number)
    if (ports.length === 0 || ports.some((port) => !(port > 0 && port < 65536))) throw new Refusal(400, 'name a port')
    const dial = podDialer(worker.networkNamespace === undefined ? undefined : worker.podIPs[0])
    sockets.handleUpgrade(request, socket, head, (joined) => joinPorts(joined, ports, dial))
  } else throw new Refusal(404, `no such path: ${url.pathname}`)
}

function refuseUpgrade(socket: Duplex, error: Error): void {
  const code = error instanceof Refusal ? error.code : 500
  const body = error.message
  socket.end(
    `HTTP/1.1 ${code} Refused\r\nContent-Type: text/plain\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  )
}

function locatePod(runtime: PodRuntime, [namespace = '', name = '', uid]: readonly string[]): PodWorker {
  const worker = runtime.find(namespace, name, uid)
  if (worker === undefined) throw new Refusal(404, `pod ${namespace}/${name} is not on this node`)
  return worker
}

/** The pod and container of `<namespace>/<pod>[/<uid>]/<container>`. @throws Refusal */
function locate(runtime: PodRuntime, path: readonly string[]): { worker: PodWorker; container: PodContainer } {
  const worker = locatePod(runtime, path.slice(0, -1))
  const name = path.at(-1) ?? ''
  const container = worker.container(name)
  if (container === undefined) throw new Refusal(404, `pod ${worker.pod.metadata.name} has no container ${name}`)
  return { worker, container }
}
