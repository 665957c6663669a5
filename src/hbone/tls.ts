// Mutual TLS as the mesh speaks it: TLS 1.3, ALPN h2, no server name, no resumption; the peer is judged by its SPIFFE ids.
import { constants, type X509Certificate } from 'node:crypto'
import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import tls from 'node:tls'
import { presentedChain } from '../util/index.ts'
import { HboneError, messageOf } from './errors.ts'
import { type PeerCertificate, peerOf, wholeChainOf } from './peer.ts'
import type { TlsCredentials, TlsOptions } from './types.ts'

const defaultHandshakeTimeoutMs = 10_000
const tls13Ciphers = 'TLS_AES_256_GCM_SHA384:TLS_AES_128_GCM_SHA256'
const tls12Ciphers =
  'ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384:ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256'

export interface TlsConnection {
  readonly socket: tls.TLSSocket
  readonly peer: PeerCertificate
}

/** Parsing a key and a chain costs more than a handshake's arithmetic: what is made of one certificate serves all its handshakes. */
function perCertificate<T>(make: (options: TlsOptions) => T): (options: TlsOptions) => T {
  const made = new WeakMap<TlsCredentials, Map<string, T>>()
  return (options) => {
    const variant = `${options.allowTls12 ?? false} ${options.handshakeTimeoutMs ?? ''} ${options.groups ?? ''} ${options.wholeChain ?? false}`
    const variants = made.get(options.credentials) ?? new Map<string, T>()
    made.set(options.credentials, variants)
    const value = variants.get(variant) ?? make(options)
    variants.set(variant, value)
    return value
  }
}

function contextOptions({ credentials, allowTls12 = false, groups }: TlsOptions): tls.SecureContextOptions {
  return {
    key: credentials.privateKey,
    cert: credentials.certificateChain,
    ca: credentials.roots,
    minVersion: allowTls12 ? 'TLSv1.2' : 'TLSv1.3',
    maxVersion: 'TLSv1.3',
    ciphers: allowTls12 ? `${tls13Ciphers}:${tls12Ciphers}` : tls13Ciphers,
    secureOptions: constants.SSL_OP_NO_TICKET,
    ...(groups === undefined ? {} : { ecdhCurve: groups }),
  }
}

const noLegacyCertificate: tls.DetailedPeerCertificate = Object.create(null)

const clientContext = perCertificate((options) => tls.createSecureContext(contextOptions(options)))

/** The client's handshake over a connected transport, which is taken over. Rejects with a HboneError; the transport is then closed. */
export function connectTls(transport: Duplex, options: TlsOptions, signal?: AbortSignal): Promise<TlsConnection> {
  // A peer that ends its side of a TLS connection has left: nothing of HTTP/2 remains possible.
  transport.allowHalfOpen = false
  return new Promise((resolve, reject) => {
    let peer: PeerCertificate | undefined
    let refusal: string | undefined
    const socket = tls.connect({
      socket: transport,
      secureContext: clientContext(options),
      ALPNProtocols: ['h2'],
      rejectUnauthorized: true,
      checkServerIdentity: () => {
        peer = peerOf(socket)
        refusal = peer === undefined ? 'peer presented no certificate' : refusalOf(peer, options)
        return refusal === undefined ? undefined : new Error(refusal)
      },
    })
    // Node would take the peer's whole chain apart for `checkServerIdentity`, which judges by the leaf alone and has it already.
    socket.getPeerCertificate = () => noLegacyCertificate
    const timeoutMs = options.handshakeTimeoutMs ?? defaultHandshakeTimeoutMs
    const timer = setTimeout(
      () => socket.destroy(new HboneError('TIMEOUT', `tls handshake not finished within ${timeoutMs} ms`)),
      timeoutMs,
    )
    const abort = () => socket.destroy(new HboneError('ABORTED', 'the caller gave up'))
    const settle = () => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', abort)
      socket.off('error', fail)
      socket.off('close', closed)
      socket.off('secureConnect', succeed)
    }
    const fail = (error: Error) => {
      settle()
      socket.on('error', ignoreLateError)
      socket.destroy()
      transport.destroy()
      reject(asTlsError(error, refusal))
    }
    const closed = () => fail(new Error('connection closed during the handshake'))
    const succeed = () => {
      if (peer === undefined) return fail(new Error('peer presented no certificate'))
      settle()
      socket.on('error', ignoreLateError)
      resolve({ socket, peer })
    }
    signal?.addEventListener('abort', abort)
    socket.on('error', fail)
    socket.on('close', closed)
    socket.on('secureConnect', succeed)
    if (signal?.aborted === true) abort()
  })
}

/** Why the peer, whose chain TLS has verified, is refused; undefined when it is not. Who cannot be judged is refused: nobody would catch what is thrown here. */
function refusalOf(peer: PeerCertificate, { wholeChain, credentials, checkPeer }: TlsOptions): string | undefined {
  try {
    if (!wholeChain) return checkPeer(peer)
    const chain = wholeChainOf(peer.chain, credentials)
    return chain === undefined ? 'the chain of the peer cannot be followed to a root' : checkPeer({ ...peer, chain })
  } catch (error) {
    return `the peer cannot be judged: ${messageOf(error)}`
  }
}

interface Acceptor {
  readonly server: tls.Server
  readonly outcomes: WeakMap<Socket, { resolve: (socket: tls.TLSSocket) => void; reject: (error: Error) => void }>
}

/** What clients sent. Node tells it in the handshake alone; that a secret is made is the one event after a client's certificates came. */
const notedChains = new WeakMap<tls.TLSSocket, readonly X509Certificate[]>()

function noteChain(socket: tls.TLSSocket): void {
  try {
    const chain = presentedChain(socket)
    if (chain.length > (notedChains.get(socket)?.length ?? 0)) notedChains.set(socket, chain)
  } catch {
    // Nobody would catch it here. What is not noted does not lead to a root, which refuses the client.
  }
}

/** A TLS server that listens nowhere: accepted sockets are handed to it, and it verifies the client's chain. */
const acceptor = perCertificate((options): Acceptor => {
  const server = tls.createServer({
    ...contextOptions(options),
    ALPNProtocols: ['h2'],
    requestCert: true,
    rejectUnauthorized: true,
    handshakeTimeout: options.handshakeTimeoutMs ?? defaultHandshakeTimeoutMs,
  })
  const outcomes: Acceptor['outcomes'] = new WeakMap()
  const outcomeOf = (socket: tls.TLSSocket) => {
    const transport: unknown = Reflect.get(socket, '_parent')
    return transport instanceof Socket ? outcomes.get(transport) : undefined
  }
  if (options.wholeChain) server.on('keylog', (_secret, socket) => noteChain(socket))
  server.on('secureConnection', (socket) => {
    const outcome = outcomeOf(socket)
    if (outcome === undefined) socket.destroy()
    else outcome.resolve(socket)
  })
  server.on('tlsClientError', (error, socket) => {
    socket.destroy()
    outcomeOf(socket)?.reject(verificationError(socket) ?? error)
  })
  return { server, outcomes }
})

/** The server's handshake over an accepted socket, which is taken over. Rejects with a HboneError; the socket is then closed. */
export async function acceptTls(transport: Socket, options: TlsOptions): Promise<TlsConnection> {
  transport.allowHalfOpen = false
  try {
    const socket = await new Promise<tls.TLSSocket>((resolve, reject) => {
      const { server, outcomes } = acceptor(options)
      outcomes.set(transport, { resolve, reject })
      server.emit('connection', transport)
    })
    socket.on('error', ignoreLateError)
    const seen = peerOf(socket)
    if (!socket.authorized || seen === undefined) {
      socket.destroy()
      throw new HboneError('TLS', 'peer presented no verified certificate')
    }
    const peer = { ...seen, chain: notedChains.get(socket) ?? seen.chain }
    const refusal = refusalOf(peer, options)
    if (refusal !== undefined) {
      socket.destroy()
      throw new HboneError('PEER_IDENTITY', refusal)
    }
    return { socket, peer }
  } catch (error) {
    transport.on('error', ignoreLateError)
    transport.destroy()
    throw asTlsError(error)
  }
}

/** Why Node closed a connection after its handshake; the error it tells then only says that it is closed. */
function verificationError(socket: tls.TLSSocket): Error | undefined {
  const code: unknown = socket.authorizationError
  return typeof code === 'string' ? new Error(`the peer's certificate is not accepted: ${code}`) : undefined
}

function asTlsError(error: unknown, refusal?: string): HboneError {
  if (error instanceof HboneError) return error
  if (refusal !== undefined) return new HboneError('PEER_IDENTITY', refusal, { cause: error })
  return new HboneError('TLS', libraryReason(error) ?? messageOf(error), { cause: error })
}

/** Why the TLS library failed, without its numbers and the places in its sources that the message has. */
function libraryReason(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('library' in error) || !('reason' in error)) return undefined
  return typeof error.reason === 'string' ? error.reason : undefined
}

/** After a handshake's outcome is told, what else happens to the socket is told by its close. */
function ignoreLateError(): void {}
