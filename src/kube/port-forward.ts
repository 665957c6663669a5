// A connection to a port of a pod through the API server, and HTTP requests over it.
import { request as httpRequest } from 'node:http'
import { Duplex } from 'node:stream'
import type { WebSocket } from 'ws'
import type { Connection } from './connection.ts'
import { errorOfConnection, errorOfResponse, KubeError } from './errors.ts'

export interface PodPort {
  readonly namespace: string
  readonly pod: string
  readonly port: number
}

export interface PodAnswer {
  readonly status: number
  readonly body: string
}

const channel = { data: 0, error: 1 } as const
const timeoutMs = 30_000

/** Opens a connection to what listens on the port inside the pod. Rejects with a KubeError. */
export async function openPodPort(connection: Connection, { namespace, pod, port }: PodPort): Promise<Duplex> {
  const { default: WebSocketClient } = await import('ws')
  const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods/${encodeURIComponent(pod)}/portforward?ports=${port}`
  const { ca, cert, key } = await connection.tls()
  const authorization = await connection.authorization()
  const socket = new WebSocketClient(`${connection.server.replace(/^http/, 'ws')}${path}`, ['v4.channel.k8s.io'], {
    ...(ca === undefined ? {} : { ca }),
    ...(cert === undefined ? {} : { cert, key }),
    rejectUnauthorized: !connection.insecureSkipTlsVerify,
    ...(connection.tlsServerName === undefined ? {} : { servername: connection.tlsServerName }),
    headers: authorization === undefined ? {} : { authorization },
    handshakeTimeout: timeoutMs,
  })
  const what = `port ${port} of pod ${namespace}/${pod}`
  // Before it is open: the first messages may come together with that.
  const stream = duplexOf(socket, what)
  await opened(socket, what)
  if (stream.errored !== null) throw stream.errored
  return stream
}

/** One HTTP request to a server in a pod that takes it for one from its own machine. Rejects with a KubeError, or when there is no answer in time. */
export async function requestPod(
  connection: Connection,
  place: PodPort,
  { method = 'GET', path }: { readonly method?: string; readonly path: string },
): Promise<PodAnswer> {
  const stream = await openPodPort(connection, place)
  try {
    return await exchange(stream, place, method, path)
  } finally {
    stream.destroy()
  }
}

function exchange(stream: Duplex, { port }: PodPort, method: string, path: string): Promise<PodAnswer> {
  return new Promise((resolve, reject) => {
    stream.once('error', reject)
    const request = httpRequest({
      method,
      path,
      headers: { host: `localhost:${port}`, connection: 'close' },
      createConnection: () => stream,
      signal: AbortSignal.timeout(timeoutMs),
    })
    request.on('error', reject)
    request.on('response', (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('error', reject)
      response.on('end', () => {
        resolve({ status: response.statusCode ?? 0, body: Buffer.concat(chunks).toString('utf8') })
      })
    })
    request.end()
  })
}

function opened(socket: WebSocket, what: string): Promise<void> {
  return new Promise((resolve, reject) => {
    socket.once('open', () => resolve())
    socket.once('error', (cause) => reject(errorOfConnection(what, cause)))
    socket.once('unexpected-response', (_request, response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('end', () =>
        reject(errorOfResponse(what, response.statusCode ?? 0, Buffer.concat(chunks).toString('utf8'))),
      )
    })
  })
}

/** The data channel of one forwarded port. Each channel begins with the port's number. */
function duplexOf(socket: WebSocket, what: string): Duplex {
  const begun = { [channel.data]: false, [channel.error]: false }
  const stream = new Duplex({
    read: () => socket.resume(),
    write(chunk: Buffer, _encoding, done) {
      socket.send(Buffer.concat([Buffer.of(channel.data), chunk]), done)
    },
    // The other side sees the end when the socket closes; until then it may still answer.
    final: (done) => done(),
    destroy(error, done) {
      socket.close()
      done(error)
    },
  })
  socket.on('message', (message: Buffer) => {
    const number = message[0]
    if (number !== channel.data && number !== channel.error) return
    const bytes = message.subarray(begun[number] ? 1 : 3)
    begun[number] = true
    if (bytes.byteLength === 0) return
    if (number === channel.error) {
      const message = `${what}: ${bytes.toString('utf8').trim()}`
      stream.destroy(new KubeError(message, { code: 0, reason: 'PodUnreachable' }))
    } else if (!stream.push(bytes)) socket.pause()
  })
  socket.on('close', () => {
    if (!stream.destroyed) stream.push(null)
  })
  // Kept in `errored` for who reads the stream later.
  stream.on('error', () => {})
  let isOpen = false
  socket.once('open', () => {
    isOpen = true
  })
  // What happens before is told to who waits for the opening.
  socket.on('error', (error) => {
    if (isOpen) stream.destroy(errorOfConnection(what, error))
  })
  return stream
}
