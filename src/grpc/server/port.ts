// One port: accepts connections, shakes hands, gives them to grpc-js, and closes them all when it ends.
import { once } from 'node:events'
import { createServer, type Server as TcpServer } from 'node:net'
import { createServer as createTlsServer, type SecureContextOptions, type Server as TlsServer } from 'node:tls'
import { type ChannelOptions, type Server as GrpcServer, Server, ServerCredentials } from '@grpc/grpc-js'
import type { GrpcConnections } from './connections.ts'

/** What a TLS port offers. Clients may show a certificate; the TLS layer verifies it against `ca`, and says so on the socket. */
export interface TlsOffer extends Pick<SecureContextOptions, 'key' | 'cert' | 'ca' | 'ciphers' | 'minVersion'> {
  /** Of SSL_OP_…; 0 for none. */
  readonly secureOptions?: number
}

export interface GrpcPortOptions {
  /** Empty for all addresses of this machine. */
  readonly host: string
  /** 0 for any. */
  readonly port: number
  /** Undefined for a port without TLS. */
  readonly tls: TlsOffer | undefined
  /** Of grpc-js; what is said of idle connections is the connections' own. */
  readonly channel: ChannelOptions
  readonly connections: GrpcConnections
  readonly addServices: (server: GrpcServer) => void
}

export interface GrpcPort {
  readonly port: number
  /** For connections from now on. */
  offer(tls: TlsOffer): void
  /** Accepts no more, lets calls of those who have proved who they are end for the given time, then ends them. */
  close(graceMs: number): Promise<void>
}

/** Rejects when it cannot listen. */
export async function openGrpcPort(options: GrpcPortOptions): Promise<GrpcPort> {
  const { connections, host, port } = options
  const { idleMs } = connections.limits
  const grpc = new Server({
    ...options.channel,
    ...(idleMs === 0 ? {} : { 'grpc.max_connection_idle_ms': idleMs }),
    interceptors: [connections.interceptor],
  })
  options.addServices(grpc)
  // The handshake is ours: to grpc-js the connection comes ready.
  const injector = grpc.createConnectionInjector(ServerCredentials.createInsecure())
  const listening: TcpServer = options.tls === undefined ? createServer() : secured(options.tls, connections)
  const sockets = new Set<{ destroy(): void }>()
  let isClosing = false
  let closed: Promise<void> | undefined
  listening.prependListener('connection', (socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
    socket.on('error', () => {})
    connections.add(socket)
  })
  listening.on(options.tls === undefined ? 'connection' : 'secureConnection', (socket) => {
    // One that is unknown by now has been destroyed: no session is to begin on it.
    if (isClosing || socket.destroyed) socket.destroy()
    else injector.injectConnection(socket)
  })
  const isListening = once(listening, 'listening')
  listening.listen({ port, host: host === '' ? '::' : host })
  await isListening
  const address = listening.address()

  async function close(graceMs: number): Promise<void> {
    isClosing = true
    const isClosed = once(listening, 'close')
    listening.close()
    connections.endUnproven()
    // Tells clients to leave once their calls are over. Its callback is no use: it comes before that.
    grpc.tryShutdown(() => {})
    const force = setTimeout(() => {
      grpc.forceShutdown()
      // A session that is told to end waits for its peer, whatever it is told: no socket is left to that.
      for (const socket of sockets) socket.destroy()
    }, graceMs)
    await isClosed
    clearTimeout(force)
  }

  return {
    port: typeof address === 'object' && address !== null ? address.port : port,
    offer(tls) {
      if ('setSecureContext' in listening) (listening as TlsServer).setSecureContext(tls)
    },
    close(graceMs) {
      closed ??= close(graceMs)
      return closed
    },
  }
}

function secured(tls: TlsOffer, connections: GrpcConnections): TlsServer {
  const server = createTlsServer({
    ...tls,
    ALPNProtocols: ['h2'],
    handshakeTimeout: connections.limits.provingMs || undefined,
    // A client certificate is optional: whether it verified is asked of the socket.
    requestCert: true,
    rejectUnauthorized: false,
  })
  server.on('secureConnection', (socket) => {
    socket.on('error', () => {})
    connections.secured(socket)
  })
  return server
}
