// A small HTTP/1.1 server: a table of paths, bounded requests, and a close that leaves nothing behind.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { pipeline, Readable } from 'node:stream'
import { formatAddress } from '../state/address.ts'

export interface HttpAnswer {
  readonly status: number
  readonly contentType?: string
  readonly headers?: Readonly<Record<string, string>>
  /** A stream is read as fast as the client takes it. */
  readonly body?: string | Uint8Array | Readable
}

export interface HttpRequest {
  readonly method: string
  readonly path: string
  readonly query: URLSearchParams
  readonly headers: IncomingMessage['headers']
}

export type Handle = (request: HttpRequest) => HttpAnswer | Promise<HttpAnswer>

/** Handlers by exact path. An unknown path is answered with 404 and nothing, a handler that throws with 500 and its message. */
export type Routes = ReadonlyMap<string, Handle>

export interface HttpServer extends AsyncDisposable {
  readonly port: number
}

const headersTimeoutMs = 2000
const checkMs = 500
const maxHeaderBytes = 8 * 1024
/** A client that takes nothing for so long is not waited for. */
const stalledMs = 30_000

/** An address, or a descriptor that listens already. */
export type HttpBinding = { readonly ip: string; readonly port: number } | { readonly fd: number }

/** Binds one address. Rejects with `failed to bind to address <addr>: <os error>`. */
export async function startHttpServer(routes: Routes, binding: HttpBinding): Promise<HttpServer> {
  const server = createServer(
    // Without an interval of ours Node would look at the time of half a minute only.
    { maxHeaderSize: maxHeaderBytes, headersTimeout: headersTimeoutMs, connectionsCheckingInterval: checkMs },
    (request, response) => {
      request.resume()
      answer(routes, request).then(
        (answer) => send(answer, response, request.method === 'HEAD'),
        (error: unknown) => {
          const message = error instanceof Error ? error.message : String(error)
          response.writeHead(500, { 'content-type': 'text/plain; charset=utf-8' }).end(message)
        },
      )
    },
  )
  await listen(server, binding)
  const bound = server.address()
  return {
    port: typeof bound === 'object' && bound !== null ? bound.port : 0,
    async [Symbol.asyncDispose]() {
      const closed = new Promise((resolve) => server.close(resolve))
      server.closeAllConnections()
      await closed
    },
  }
}

function send({ status, contentType, headers, body = '' }: HttpAnswer, to: ServerResponse, headOnly: boolean): void {
  const head = { ...(contentType === undefined ? {} : { 'content-type': contentType }), ...headers }
  if (!(body instanceof Readable)) {
    const length = typeof body === 'string' ? Buffer.byteLength(body) : body.length
    to.writeHead(status, { 'content-length': length, ...head }).end(headOnly ? undefined : body)
    return
  }
  to.writeHead(status, head)
  if (headOnly) {
    body.destroy()
    to.end()
    return
  }
  to.setTimeout(stalledMs, () => to.destroy())
  // Half an answer must not look whole: a failure cuts the connection, which the pipeline does.
  pipeline(body, to, () => undefined)
}

async function answer(routes: Routes, request: IncomingMessage): Promise<HttpAnswer> {
  const url = URL.parse(request.url ?? '/', 'http://localhost')
  const handle = url === null ? undefined : routes.get(url.pathname)
  if (url === null || handle === undefined) return { status: 404 }
  const { method = 'GET', headers } = request
  return await handle({ method, path: url.pathname, query: url.searchParams, headers })
}

async function listen(server: Server, binding: HttpBinding): Promise<void> {
  try {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen('fd' in binding ? binding : { host: binding.ip, port: binding.port }, () => {
        server.off('error', reject)
        resolve()
      })
    })
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    const where = 'fd' in binding ? `descriptor ${binding.fd}` : formatAddress(binding)
    throw new Error(`failed to bind to address ${where}: ${why}`, { cause: error })
  }
}
