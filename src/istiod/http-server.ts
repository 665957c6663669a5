// A small HTTP server: exact paths, each a function to a reply.
import { createServer, type IncomingMessage, type Server } from 'node:http'

export interface Reply {
  readonly status: number
  readonly body: string
  readonly contentType?: string
}

/** `body` is that of a PUT, empty otherwise. */
export type Route = (request: IncomingMessage, url: URL, body: string) => Reply | Promise<Reply>

export interface HttpServer {
  readonly address: string
  close(): Promise<void>
}

export const textReply = (status: number, body: string): Reply => ({ status, body })
export const jsonReply = (value: unknown, pretty = false): Reply => ({
  status: 200,
  body: JSON.stringify(value, undefined, pretty ? 2 : undefined),
  contentType: 'application/json',
})

export type Method = 'GET' | 'HEAD' | 'PUT'

const mostBodyBytes = 64 * 1024

/** Serves until closed. `route` finds the function of a path. `address` is `host:port` or `:port`. */
export async function serveHttp(
  address: string,
  route: (path: string) => Route | undefined,
  failed: (error: unknown) => void,
  methods: readonly Method[] = ['GET', 'HEAD'],
): Promise<HttpServer> {
  const server = createServer({ requestTimeout: 30_000, keepAliveTimeout: 90_000 }, (request, response) => {
    answer(request).then(
      ({ status, body, contentType = 'text/plain; charset=utf-8' }) => {
        response.writeHead(status, { 'content-type': contentType, 'x-content-type-options': 'nosniff' })
        response.end(request.method === 'HEAD' ? '' : body)
      },
      (error: unknown) => {
        failed(error)
        response.writeHead(500).end('internal error\n')
      },
    )
  })

  async function answer(request: IncomingMessage): Promise<Reply> {
    const url = URL.parse(request.url ?? '/', 'http://local')
    const method = methods.find((one) => one === request.method)
    const body = method === 'PUT' ? await bodyOf(request) : ''
    request.resume()
    if (method === undefined) return textReply(405, 'method not allowed\n')
    if (body === undefined) return textReply(413, 'the body is too large\n')
    const found = url === null ? undefined : route(url.pathname)
    return url === null || found === undefined ? textReply(404, 'not found\n') : found(request, url, body)
  }

  await listen(server, address)
  const bound = server.address()
  return {
    address:
      typeof bound === 'object' && bound !== null
        ? `${bound.address.includes(':') ? `[${bound.address}]` : bound.address}:${bound.port}`
        : address,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

/** Undefined when there is too much of it. */
async function bodyOf(request: IncomingMessage): Promise<string | undefined> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.byteLength
    if (bytes > mostBodyBytes) return undefined
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

function listen(server: Server, address: string): Promise<void> {
  const { host, port } = splitAddress(address)
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen({ port, ...(host === '' ? {} : { host }) }, () => {
      server.off('error', reject)
      resolve()
    })
  })
}

/** `:8080`, `127.0.0.1:8080` or `[::1]:8080`. */
export function splitAddress(address: string): { readonly host: string; readonly port: number } {
  const at = address.lastIndexOf(':')
  const port = Number(address.slice(at + 1))
  if (at === -1 || !Number.isInteger(port) || port < 0 || port > 65_535) {
    throw new TypeError(`${address}: expected host:port or :port`)
  }
  return { host: address.slice(0, at).replace(/^\[|\]$/g, ''), port }
}
