// What the services of the sample share: JSON over HTTP, a health page, and who is asking.
import { createServer, type IncomingMessage } from 'node:http'
import { hostname } from 'node:os'

export interface Reply {
  readonly status?: number
  readonly type?: 'application/json' | 'text/html'
  readonly body: unknown
}

export interface Asked {
  readonly url: URL
  readonly message: IncomingMessage
}

export type Handler = (asked: Asked) => Reply | undefined | Promise<Reply | undefined>

const port = Number(process.env.PORT ?? 9080)

/** Serves the handler on PORT until SIGTERM. `/health` and `/whoami` are answered for every service. */
export function serve(name: string, handle: Handler): void {
  const server = createServer(async (message, response) => {
    const url = new URL(message.url ?? '/', `http://${message.headers.host ?? 'localhost'}`)
    const reply = await answer(name, handle, { url, message })
    const { status = 200, type = 'application/json', body } = reply
    response.writeHead(status, { 'content-type': type })
    response.end(typeof body === 'string' ? body : `${JSON.stringify(body)}\n`)
  })
  server.listen(port, () => say(`${name} listens on ${port}`))
  process.once('SIGTERM', () => {
    server.close(() => process.exit(0))
    server.closeIdleConnections()
  })
}

async function answer(name: string, handle: Handler, asked: Asked): Promise<Reply> {
  const { pathname } = asked.url
  if (pathname === '/health') return { body: { status: 'healthy' } }
  if (pathname === '/whoami') {
    const { remoteAddress = '' } = asked.message.socket
    return { body: { service: name, pod: hostname(), client: remoteAddress.replace(/^::ffff:/, '') } }
  }
  try {
    return (await handle(asked)) ?? { status: 404, body: { error: `${name} has no page ${pathname}` } }
  } catch (error) {
    return { status: 502, body: { error: messageOf(error) } }
  }
}

/** The last segment of a path such as `/reviews/0`. */
export function idOf(url: URL, prefix: string): string | undefined {
  return url.pathname.startsWith(`/${prefix}/`) ? url.pathname.slice(prefix.length + 2) : undefined
}

/** On a connection of its own: the mesh balances connections, and each request is to take its own way. */
export async function getJson<T>(url: string): Promise<T> {
  const response = await fetch(url, { signal: AbortSignal.timeout(5_000), headers: { connection: 'close' } })
  if (!response.ok) throw new Error(`${url}: HTTP ${response.status}`)
  return (await response.json()) as T
}

export function messageOf(error: unknown): string {
  const { cause, message } = error as { cause?: { message?: string }; message?: string }
  return cause?.message ?? message ?? String(error)
}

export function say(line: string): void {
  process.stdout.write(`${line}\n`)
}
