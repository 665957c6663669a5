// Sockets with the options that Node cannot set, created in a given network namespace.
import { closeSync } from 'node:fs'
import type { Socket } from 'node:net'
import { decodeIpAddress, encodeIpAddress, type IpAddress } from './address.ts'
import * as c from './constants.ts'
import { LinuxError } from './errors.ts'
import { checked, libc } from './libc.ts'
import { runInNamespace } from './namespace.ts'
import type { CreatedSocket, KeepaliveOptions, NetworkNamespace, SocketOptions } from './types.ts'

/** Creates a socket as described, inside `namespace` where one is given. The socket stays there. Throws a LinuxError. */
export function createSocket(options: SocketOptions, namespace?: NetworkNamespace): CreatedSocket {
  return runInNamespace(namespace, () => {
    const family = options.family === 4 ? c.AF_INET : c.AF_INET6
    const type = (options.type === 'stream' ? c.SOCK_STREAM : c.SOCK_DGRAM) | c.SOCK_CLOEXEC | c.SOCK_NONBLOCK
    const fd = checked('socket', libc().socket(family, type, 0))
    try {
      return { fd, transparent: configure(fd, options) }
    } catch (error) {
      closeSync(fd)
      throw error
    }
  })
}

function configure(fd: number, options: SocketOptions): boolean {
  const v6 = options.family === 6
  if (options.reuseAddress === true) setOption(fd, c.SOL_SOCKET, c.SO_REUSEADDR, 1)
  if (options.reusePort === true) setOption(fd, c.SOL_SOCKET, c.SO_REUSEPORT, 1)
  if (v6) setOption(fd, c.SOL_IPV6, c.IPV6_V6ONLY, options.v6Only === true ? 1 : 0)
  if (options.mark !== undefined) setMark(fd, options.mark)
  if (options.freebind === true) {
    setOption(fd, c.SOL_IP, c.IP_FREEBIND, 1)
    if (v6) setOption(fd, c.SOL_IPV6, c.IPV6_FREEBIND, 1)
  }
  if (options.tcp !== undefined) tuneTcp(fd, options.tcp.keepalive)
  const transparent = options.transparent !== undefined && setTransparent(fd, v6, options.transparent === 'required')
  if (options.bind !== undefined) {
    // A source address for a connection: the port is then chosen at connect, unique per destination rather than per host.
    if (options.freebind === true && options.bind.port === 0) setOption(fd, c.SOL_IP, c.IP_BIND_ADDRESS_NO_PORT, 1)
    const address = encodeIpAddress(options.family, options.bind)
    const { ip, port } = options.bind
    checked('bind', libc().bind(fd, address, address.length), v6 ? `[${ip}]:${port}` : `${ip}:${port}`)
  }
  if (options.backlog !== undefined) checked('listen', libc().listen(fd, options.backlog))
  return transparent
}

function setTransparent(fd: number, v6: boolean, required: boolean): boolean {
  try {
    const failed = 'failed to make the socket transparent: is CAP_NET_ADMIN missing?'
    if (v6) setOption(fd, c.SOL_IPV6, c.IPV6_TRANSPARENT, 1, failed)
    setOption(fd, c.SOL_IP, c.IP_TRANSPARENT, 1, failed)
    return true
  } catch (error) {
    if (required) throw error
    return false
  }
}

/** SO_MARK. Needs CAP_NET_ADMIN. */
export function setMark(fd: number, mark: number): void {
  setOption(fd, c.SOL_SOCKET, c.SO_MARK, mark, `failed to set socket mark: is CAP_NET_ADMIN missing?`)
}

/** TCP keepalive as given, and TCP_NODELAY. */
function tuneTcp(fd: number, keepalive: KeepaliveOptions | undefined): void {
  setOption(fd, c.SOL_TCP, c.TCP_NODELAY, 1)
  if (keepalive === undefined) return
  const { timeSeconds, intervalSeconds, retries } = keepalive
  setOption(fd, c.SOL_SOCKET, c.SO_KEEPALIVE, 1)
  setOption(fd, c.SOL_TCP, c.TCP_KEEPIDLE, timeSeconds)
  setOption(fd, c.SOL_TCP, c.TCP_KEEPINTVL, intervalSeconds)
  setOption(fd, c.SOL_TCP, c.TCP_KEEPCNT, retries)
  if (keepalive.userTimeout) {
    setOption(fd, c.SOL_TCP, c.TCP_USER_TIMEOUT, (timeSeconds + retries * intervalSeconds) * 1000)
  }
}

export type OriginalDestination =
  | { readonly kind: 'tracked'; readonly address: IpAddress }
  /** The kernel knows of none: the socket's own local address is where the client meant to connect. */
  | { readonly kind: 'untracked' }

/** Where the client of an accepted TCP connection meant to connect before redirection. */
export function originalDestination(fd: number): OriginalDestination {
  const address = queryOriginalDestination(fd, c.SOL_IP, 16) ?? queryOriginalDestination(fd, c.SOL_IPV6, 28)
  return address === undefined ? { kind: 'untracked' } : { kind: 'tracked', address }
}

/** Each call is over before the next begins, so that all of a thread can share these. */
const answer = Buffer.alloc(28)
const answerLength = Buffer.alloc(4)
const optionValue = Buffer.alloc(4)

function queryOriginalDestination(fd: number, level: number, size: number): IpAddress | undefined {
  answerLength.writeUInt32LE(size)
  if (libc().getsockopt(fd, level, c.SO_ORIGINAL_DST, answer, answerLength) !== 0) return undefined
  return decodeIpAddress(answer)
}

const tcpStateClosed = 7

/** True once the peer has reset the TCP connection: told without reading from it. */
export function isReset(fd: number): boolean {
  answerLength.writeUInt32LE(8)
  return libc().getsockopt(fd, c.SOL_TCP, c.TCP_INFO, answer, answerLength) === 0 && answer[0] === tcpStateClosed
}

/** The descriptor below a connected Node socket. Undefined once it is closed. */
export function descriptorOf(socket: Socket): number | undefined {
  const handle: unknown = Reflect.get(socket, '_handle')
  if (typeof handle !== 'object' || handle === null) return undefined
  const fd: unknown = Reflect.get(handle, 'fd')
  return typeof fd === 'number' && fd >= 0 ? fd : undefined
}

/** No time to linger: what is not sent yet is thrown away, and the peer sees a reset. */
const noLinger = Buffer.alloc(8)
noLinger.writeInt32LE(1)

/**
 * Closes a TCP connection at once so that its peer sees a reset. Node's own `resetAndDestroy` neither resets nor closes, ever, what
 * is in the middle of an orderly end: libuv refuses it, and the descriptor is lost.
 */
export function resetSocket(socket: Socket): void {
  const fd = descriptorOf(socket)
  if (fd !== undefined) libc().setsockopt(fd, c.SOL_SOCKET, c.SO_LINGER, noLinger, noLinger.length)
  socket.destroy()
}

function setOption(fd: number, level: number, name: number, value: number, detail?: string): void {
  optionValue.writeInt32LE(value)
  if (libc().setsockopt(fd, level, name, optionValue, 4) !== 0) {
    throw new LinuxError('setsockopt', libc().errno(), detail ?? `level ${level} option ${name}`)
  }
}
