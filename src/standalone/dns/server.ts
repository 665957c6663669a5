// The cluster's DNS server: UDP, TCP, and an HTTP port for probes.
import dgram from 'node:dgram'
import http from 'node:http'
import net from 'node:net'
import { decodeQuery, encodeFailure, encodeResolution, encodeTruncated, type Query } from './message.ts'
import { type ClusterView, resolveName } from './records.ts'
import { forwardQuery, frame, frameReader } from './upstream.ts'

export interface DnsServerOptions {
  readonly host: string
  readonly port: number
  readonly healthPort: number
  readonly view: ClusterView
  readonly resolvers: () => readonly string[]
  readonly isReady: () => boolean
}

const idleMs = 30_000
const mostConnections = 1000

export async function startDnsServer(options: DnsServerOptions): Promise<AsyncDisposable & { port: number }> {
  const udp = dgram.createSocket({ type: net.isIPv6(options.host) ? 'udp6' : 'udp4' })
  const tcp = net.createServer()
  tcp.maxConnections = mostConnections
  const health = http.createServer((request, response) => {
    const ok = request.url === '/health' || (request.url === '/ready' && options.isReady())
    response.writeHead(ok ? 200 : 503).end(ok ? 'ok' : 'not ready')
  })
  udp.on('message', (bytes, client) => {
    void answer(options, bytes, false).then((reply) => {
      if (reply !== undefined) udp.send(reply, client.port, client.address, () => undefined)
    })
  })
  const connections = new Set<net.Socket>()
  tcp.on('connection', (socket) => {
    connections.add(socket)
    socket.setTimeout(idleMs, () => socket.destroy())
    socket.on('error', () => socket.destroy())
    socket.on('close', () => connections.delete(socket))
    socket.on(
      'data',
      frameReader((bytes) => {
        void answer(options, bytes, true).then((reply) => {
          if (reply === undefined) socket.destroy()
          else if (socket.writable) socket.write(frame(reply))
        })
      }),
    )
  })
  await listening(tcp, () => tcp.listen(options.port, options.host))
  const { port } = tcp.address() as net.AddressInfo
  await listening(udp, () => udp.bind(port, options.host))
  await listening(health, () => health.listen(options.healthPort, options.host))
  return {
    port,
    async [Symbol.asyncDispose]() {
      for (const socket of connections) socket.destroy()
      health.closeAllConnections()
      await Promise.all([
        new Promise<void>((resolve) => udp.close(resolve)),
        new Promise((resolve) => tcp.close(resolve)),
        new Promise((resolve) => health.close(resolve)),
      ])
    },
  }
}

async function listening(server: NodeJS.EventEmitter, listen: () => void): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  server.once('listening', resolve)
  server.once('error', reject)
  listen()
  await promise
  server.off('error', reject)
}

async function answer(options: DnsServerOptions, bytes: Buffer, overTcp: boolean): Promise<Buffer | undefined> {
  const query = decodeQuery(bytes)
  if (query === undefined) return undefined
  const reply = await resolveQuery(options, query, bytes, overTcp)
  return overTcp || reply.length <= query.maxBytes ? reply : encodeTruncated(query)
}

async function resolveQuery(options: DnsServerOptions, query: Query, bytes: Buffer, overTcp: boolean): Promise<Buffer> {
  if (!options.isReady()) return encodeFailure(query, 'servfail')
  const resolution = resolveName(query.name, query.type, options.view)
  if (resolution.kind !== 'forward') return encodeResolution(query, resolution, options.view.domain)
  try {
    return await forwardQuery(bytes, options.resolvers(), overTcp)
  } catch {
    return encodeFailure(query, 'servfail')
  }
}
