// TCP listeners and connections inside a pod's network namespace.
import net from 'node:net'
import {
  createSocket,
  descriptorOf,
  isReset,
  type KeepaliveOptions,
  type NetworkNamespace,
  originalDestination,
  type SocketOptions,
} from '../../linux/index.ts'
import type { SocketAddress } from '../model.ts'
import { canonicalIp, formatAddress } from '../state/address.ts'
import { errorTexts } from '../telemetry/index.ts'
import { ConnectionError } from './errors.ts'

export interface ListenOptions {
  readonly namespace: NetworkNamespace | undefined
  readonly address: SocketAddress
  readonly mark: number | undefined
  readonly transparent: 'required' | 'attempt' | 'never'
  readonly reusePort: boolean
  /** Of every socket that is accepted. */
  readonly keepalive: KeepaliveOptions | undefined
  /** Told of accept failures, such as running out of descriptors. */
  readonly onError: (error: Error) => void
}

export interface TcpListener {
  /** Whether the client's address can be kept on connections made for this listener's clients. */
  readonly transparent: boolean
  /** No new connections; those accepted go on. */
  close(): void
}

/** Connections that the kernel holds for us while we are busy; it has a limit of its own. Node takes it as an argument only, beside a descriptor. */
const backlog = 1024

/** Listens inside the namespace. Accepted sockets are paused, so that what a refused client sent is answered with a reset. */
export async function listenTcp(options: ListenOptions, onSocket: (socket: net.Socket) => void): Promise<TcpListener> {
  const { address, namespace, mark, transparent, reusePort, keepalive } = options
  const server = net.createServer({ allowHalfOpen: true, pauseOnConnect: true }, onSocket)
  try {
    const socket = createSocket(
      {
        family: address.ip.includes(':') ? 6 : 4,
        type: 'stream',
        reuseAddress: true,
        reusePort,
        tcp: { keepalive },
        bind: address,
        ...(mark === undefined ? {} : { mark }),
        ...(transparent === 'never' ? {} : { transparent }),
      },
      namespace,
    )
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen({ fd: socket.fd }, backlog, () => {
        server.off('error', reject)
        server.on('error', options.onError)
        resolve()
      })
    })
    return { transparent: socket.transparent, close: () => void server.close() }
  } catch (error) {
    server.close()
    throw new Error(`failed to bind to address ${formatAddress(address)}: ${messageOf(error)}`, { cause: error })
  }
}

export interface ConnectOptions {
  readonly namespace: NetworkNamespace | undefined
  readonly mark: number | undefined
  readonly keepalive: KeepaliveOptions | undefined
  readonly timeoutMs: number
  /** The client's address, to be kept as source. */
  readonly sourceIp?: string
  /** The source address could not be kept; the connection is made without. */
  readonly onSourceLost?: (error: unknown) => void
}

/** Connects from inside the namespace. Rejects with a ConnectionError; an abort rejects with its reason. */
export function connectTcp(to: SocketAddress, options: ConnectOptions, signal: AbortSignal): Promise<net.Socket> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason)
    const socket = new net.Socket(socketConfig(openSocket(to, options)))
    const settle = () => {
      clearTimeout(timer)
      signal.removeEventListener('abort', abort)
      socket.off('error', fail)
    }
    const fail = (error: unknown) => {
      settle()
      socket.on('error', () => undefined)
      socket.destroy()
      reject(error)
    }
    const abort = () => fail(signal.reason)
    const timer = setTimeout(
      () => fail(new ConnectionError('CONNECT', errorTexts.connect('deadline has elapsed'), { cause: 'timeout' })),
      options.timeoutMs,
    )
    signal.addEventListener('abort', abort)
    socket.once('error', (error) => fail(new ConnectionError('CONNECT', errorTexts.connect(error.message))))
    socket.once('connect', () => {
      settle()
      resolve(socket)
    })
    socket.pause()
    socket.connect({ host: to.ip, port: to.port })
  })
}

export const isTimeout = (error: unknown): boolean => error instanceof ConnectionError && error.cause === 'timeout'

/** `manualStart`: not to read before it is connected. Known to net.Socket, not to its type. */
function socketConfig(fd: number): net.SocketConstructorOpts {
  return Object.assign({ fd, allowHalfOpen: true }, { manualStart: true })
}

function openSocket(to: SocketAddress, options: ConnectOptions): number {
  const { namespace, mark, keepalive, sourceIp } = options
  const plain: SocketOptions = {
    family: to.ip.includes(':') ? 6 : 4,
    type: 'stream',
    tcp: { keepalive },
    ...(mark === undefined ? {} : { mark }),
  }
  if (sourceIp !== undefined) {
    try {
      const source = { transparent: 'required', freebind: true, bind: { ip: sourceIp, port: 0 } } as const
      return createSocket({ ...plain, ...source }, namespace).fd
    } catch (error) {
      options.onSourceLost?.(error)
    }
  }
  return createSocket(plain, namespace).fd
}

/** The client of an accepted socket; undefined when it is gone already. */
export function remoteAddressOf(socket: net.Socket): SocketAddress | undefined {
  return addressOf(socket.remoteAddress, socket.remotePort)
}

/** Where an accepted socket's client connected to, before redirection where there was any. */
export function destinationOf(socket: net.Socket): SocketAddress | undefined {
  const fd = descriptorOf(socket)
  if (fd === undefined) return undefined
  const original = originalDestination(fd)
  return original.kind === 'tracked' ? original.address : addressOf(socket.localAddress, socket.localPort)
}

/** The address an accepted socket is bound to. */
export function localAddressOf(socket: net.Socket): SocketAddress | undefined {
  return addressOf(socket.localAddress, socket.localPort)
}

const mappedPrefix = '::ffff:'

/** As Node prints it: an IPv4 client of a dual-stack listener in its mapped form, which is too common to be parsed each time. */
function addressOf(ip: string | undefined, port: number | undefined): SocketAddress | undefined {
  if (ip === undefined || port === undefined) return undefined
  const mapped = ip.startsWith(mappedPrefix) ? ip.slice(mappedPrefix.length) : ip
  const canonical = net.isIPv4(mapped) ? mapped : canonicalIp(ip)
  return canonical === undefined ? undefined : { ip: canonical, port }
}

const goneCheckMs = 1_000

interface PausedWatch {
  readonly socket: net.Socket
  readonly onGone: () => void
}

const watched = new Set<PausedWatch>()
let checking: NodeJS.Timeout | undefined

/** Calls `onGone` when a paused client resets its connection. Returns the function that ends the watch. */
export function watchPaused(socket: net.Socket, onGone: () => void): () => void {
  const watch = { socket, onGone }
  watched.add(watch)
  // One timer for all: most watches end long before it looks at them.
  checking ??= setInterval(checkPaused, goneCheckMs).unref()
  return () => {
    watched.delete(watch)
  }
}

function checkPaused(): void {
  for (const { socket, onGone } of watched) {
    const fd = descriptorOf(socket)
    if (fd === undefined || isReset(fd)) onGone()
  }
  if (watched.size > 0) return
  clearInterval(checking)
  checking = undefined
}

const messageOf = (error: unknown) => (error instanceof Error ? error.message : String(error))
