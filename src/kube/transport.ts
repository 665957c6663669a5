// HTTP requests to one API server: keep-alive connections, credentials renewed as their files change.
import { Agent as HttpAgent, request as httpRequest, type IncomingMessage, type RequestOptions } from 'node:http'
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https'
import { isIP } from 'node:net'
import { createSecureContext } from 'node:tls'
import type { Connection, TlsMaterial } from './connection.ts'
import { errorOfConnection, KubeError } from './errors.ts'
import { type IdleConnections, watchIdleness } from './idle-connections.ts'

export interface TransportRequest {
  readonly method?: string
  readonly path: string
  readonly body?: string | Uint8Array
  readonly headers?: Readonly<Record<string, string>>
  readonly signal?: AbortSignal
  /** The longest silence of the connection, in milliseconds. Absent: as long as it lasts. */
  readonly idleTimeoutMs?: number
  /** The longest wait for the head of the response, where that is shorter. */
  readonly headTimeoutMs?: number
}

export interface Transport {
  /** Resolves with the head of the response; the caller consumes or destroys the body. Rejects with a KubeError of code 0. */
  send(request: TransportRequest): Promise<IncomingMessage>
  close(): void
}

interface KeptAgent {
  readonly material: TlsMaterial
  readonly agent: HttpAgent
  readonly idle: IdleConnections
}

export function createTransport(connection: Connection, userAgent: string): Transport {
  const url = new URL(connection.server)
  const secure = url.protocol === 'https:'
  const host = url.hostname.replace(/^\[|\]$/g, '')
  const prefix = url.pathname.replace(/\/+$/, '')
  let agent: KeptAgent | undefined
  let closed = false
  const outstanding = new Set<AbortController>()

  async function currentAgent(): Promise<KeptAgent> {
    const material = secure ? await connection.tls() : { ca: undefined, cert: undefined, key: undefined }
    if (agent !== undefined && sameMaterial(agent.material, material)) return agent
    if (agent !== undefined) retire(agent.agent)
    const created = secure ? secureAgent(connection, host, material) : new HttpAgent({ keepAlive: true })
    agent = { material, agent: created, idle: watchIdleness(created) }
    return agent
  }

  async function attempt(request: TransportRequest, authorization: string | undefined): Promise<IncomingMessage> {
    const { agent: chosen, idle } = await currentAgent()
    idle.endOld()
    const abort = new AbortController()
    const options: RequestOptions = {
      agent: chosen,
      host,
      port: url.port === '' ? (secure ? 443 : 80) : Number(url.port),
      method: request.method ?? 'GET',
      path: prefix + request.path,
      signal: request.signal === undefined ? abort.signal : AbortSignal.any([abort.signal, request.signal]),
      headers: {
        'user-agent': userAgent,
        accept: 'application/json',
        ...(request.body === undefined ? {} : { 'content-length': Buffer.byteLength(request.body) }),
        ...(authorization === undefined ? {} : { authorization }),
        ...request.headers,
      },
    }
    outstanding.add(abort)
    try {
      const response = await exchange(options, request, secure, () => outstanding.delete(abort))
      idle.answered(response)
      return response
    } catch (error) {
      outstanding.delete(abort)
      throw error
    }
  }

  return {
    async send(request) {
      const name = `${request.method ?? 'GET'} ${connection.server}${request.path}`
      if (closed) throw new KubeError(`${name}: the client is closed`, { code: 0, reason: 'Closed' })
      try {
        const authorization = await connection.authorization()
        const response = await attemptTwice(() => attempt(request, authorization), request)
        if (response.statusCode !== 401 || authorization === undefined) return response
        const renewed = await connection.authorization(authorization)
        if (renewed === authorization) return response
        response.resume()
        return await attempt(request, renewed)
      } catch (cause) {
        throw cause instanceof KubeError ? cause : errorOfConnection(name, cause)
      }
    },
    close() {
      closed = true
      for (const abort of outstanding) abort.abort()
      outstanding.clear()
      agent?.agent.destroy()
    },
  }
}

/** Ends the idle connections made with old credentials; requests under way finish on theirs. */
function retire(agent: HttpAgent): void {
  agent.maxFreeSockets = 0
  for (const sockets of Object.values(agent.freeSockets)) {
    for (const socket of sockets ?? []) socket.destroy()
  }
}

/** A kept-alive connection that the server closed meanwhile says nothing about the server: reads are sent once more. */
class StaleConnection extends Error {}

async function attemptTwice(
  attempt: () => Promise<IncomingMessage>,
  request: TransportRequest,
): Promise<IncomingMessage> {
  try {
    return await attempt()
  } catch (error) {
    if (!(error instanceof StaleConnection)) throw error
    if (request.method !== undefined && request.method !== 'GET') throw error.cause
    return attempt()
  }
}

function exchange(
  options: RequestOptions,
  request: TransportRequest,
  secure: boolean,
  ended: () => void,
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const sent = (secure ? httpsRequest : httpRequest)(options)
    sent.once('error', (cause: NodeJS.ErrnoException) => {
      const stale = sent.reusedSocket && (cause.code === 'ECONNRESET' || cause.code === 'EPIPE')
      reject(stale ? new StaleConnection(cause.message, { cause }) : cause)
    })
    sent.once('socket', (socket) => socket.setKeepAlive(true, 30_000))
    const late = (): void => {
      sent.destroy(new Error(`no answer within ${request.headTimeoutMs} ms`))
    }
    const headTimer = request.headTimeoutMs === undefined ? undefined : setTimeout(late, request.headTimeoutMs)
    sent.once('close', () => clearTimeout(headTimer))
    sent.once('response', (response) => {
      clearTimeout(headTimer)
      response.once('close', ended)
      // Errors after the head reach the reader of the body; an unread body must not crash the process.
      response.on('error', () => {})
      sent.on('error', () => {})
      resolve(response)
    })
    if (request.idleTimeoutMs !== undefined) {
      sent.setTimeout(request.idleTimeoutMs, () => {
        sent.destroy(new Error(`no answer within ${request.idleTimeoutMs} ms`))
      })
    }
    sent.end(request.body)
  })
}

function secureAgent(connection: Connection, host: string, material: TlsMaterial): HttpsAgent {
  const servername = connection.tlsServerName ?? (isIP(host) === 0 ? host : undefined)
  return new HttpsAgent({
    keepAlive: true,
    secureContext: createSecureContext({ ...definedOnly(material), minVersion: 'TLSv1.2' }),
    rejectUnauthorized: !connection.insecureSkipTlsVerify,
    ...(servername === undefined ? {} : { servername }),
  })
}

function definedOnly(material: TlsMaterial): { ca?: string; cert?: string; key?: string } {
  return {
    ...(material.ca === undefined ? {} : { ca: material.ca }),
    ...(material.cert === undefined ? {} : { cert: material.cert }),
    ...(material.key === undefined ? {} : { key: material.key }),
  }
}

function sameMaterial(a: TlsMaterial, b: TlsMaterial): boolean {
  return a.ca === b.ca && a.cert === b.cert && a.key === b.key
}

/** The whole body as text. */
export async function readText(response: IncomingMessage): Promise<string> {
  response.setEncoding('utf8')
  let text = ''
  for await (const chunk of response as AsyncIterable<string>) text += chunk
  return text
}
