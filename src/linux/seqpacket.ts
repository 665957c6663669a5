// SOCK_SEQPACKET unix sockets: packets with descriptors (SCM_RIGHTS), without blocking the event loop.
import { closeSync, lstatSync, unlinkSync } from 'node:fs'
import { encodeUnixAddress } from './address.ts'
import * as c from './constants.ts'
import { LinuxError } from './errors.ts'
import { checked, libc } from './libc.ts'
import { announceActivity, untilReady } from './readiness.ts'
import type { SeqpacketConnection, SeqpacketListener } from './types.ts'

/** The kernel allows this many descriptors in one message (SCM_MAX_FD). */
const maxDescriptors = 253
const controlHeaderBytes = 16
const defaultMaxBytes = 64 * 1024

/** Connects to a listening SOCK_SEQPACKET socket. Throws a LinuxError (ENOENT, ECONNREFUSED, EAGAIN when its queue is full). */
export function connectSeqpacket(path: string): SeqpacketConnection {
  const fd = openSocket()
  try {
    const address = encodeUnixAddress(path)
    checked('connect', libc().connect(fd, address, address.length), path)
    return connectionOf(fd)
  } catch (error) {
    closeSync(fd)
    throw error
  }
}

/** Listens on a path; a socket file left there by an earlier process is replaced. close() removes the file. */
export function listenSeqpacket(path: string, backlog = 128): SeqpacketListener {
  const abstract = path.startsWith('\0')
  if (!abstract) removeStaleSocket(path)
  const fd = openSocket()
  try {
    const address = encodeUnixAddress(path)
    checked('bind', libc().bind(fd, address, address.length), path)
    checked('listen', libc().listen(fd, backlog), path)
    announceActivity(fd)
  } catch (error) {
    closeSync(fd)
    throw error
  }
  const inode = abstract ? undefined : lstatSync(path).ino
  const closing = new AbortController()
  const close = () => {
    if (closing.signal.aborted) return
    closing.abort()
    closeSync(fd)
    // A successor may have bound the path meanwhile: only this listener's own file is removed.
    if (inode !== undefined && lstatSync(path, { throwIfNoEntry: false })?.ino === inode) unlinkSync(path)
  }
  return {
    async accept() {
      try {
        return connectionOf(await untilReady(() => acceptNow(fd), closing.signal))
      } catch (error) {
        if (closing.signal.aborted) return undefined
        throw error
      }
    },
    close,
    async [Symbol.asyncDispose]() {
      close()
    },
  }
}

function openSocket(): number {
  return checked('socket', libc().socket(c.AF_UNIX, c.SOCK_SEQPACKET | c.SOCK_CLOEXEC | c.SOCK_NONBLOCK, 0))
}

function removeStaleSocket(path: string): void {
  const found = lstatSync(path, { throwIfNoEntry: false })
  if (found === undefined) return
  if (!found.isSocket()) throw new LinuxError('bind', 'EADDRINUSE', `${path} is there and is not a socket`)
  unlinkSync(path)
}

function acceptNow(fd: number): number | undefined {
  const accepted = libc().accept4(fd, null, null, c.SOCK_CLOEXEC | c.SOCK_NONBLOCK)
  if (accepted >= 0) return accepted
  const code = libc().errno()
  if (code === 'EAGAIN' || code === 'EINTR' || code === 'ECONNABORTED') return undefined
  throw new LinuxError('accept4', code)
}

function connectionOf(fd: number): SeqpacketConnection {
  announceActivity(fd)
  const closing = new AbortController()
  const close = () => {
    if (closing.signal.aborted) return
    closing.abort(new LinuxError('recvmsg', 'ECANCELED', 'the connection was closed here'))
    closeSync(fd)
  }
  return {
    async send(message, descriptors = []) {
      await untilReady(() => sendNow(fd, message, descriptors), closing.signal)
    },
    async receive(options = {}) {
      const { maxBytes = defaultMaxBytes, timeoutMs } = options
      if (timeoutMs === undefined) return (await untilReady(() => receiveNow(fd, maxBytes), closing.signal)).packet
      const timeout = new AbortController()
      const timer = setTimeout(() => timeout.abort(new LinuxError('recvmsg', 'ETIMEDOUT')), timeoutMs)
      try {
        const signal = AbortSignal.any([closing.signal, timeout.signal])
        return (await untilReady(() => receiveNow(fd, maxBytes), signal)).packet
      } finally {
        clearTimeout(timer)
      }
    },
    close,
    async [Symbol.asyncDispose]() {
      close()
    },
  }
}

function sendNow(fd: number, message: Uint8Array, descriptors: readonly number[]): true | undefined {
  if (message.length === 0) throw new LinuxError('sendmsg', 'EINVAL', 'an empty packet reads as the end of the stream')
  if (descriptors.length > maxDescriptors) throw new LinuxError('sendmsg', 'EINVAL', 'too many descriptors')
  const control = encodeDescriptors(descriptors)
  const header = messageHeader(message, control)
  const sent = libc().sendmsg(fd, header.bytes, c.MSG_DONTWAIT | c.MSG_NOSIGNAL)
  if (sent === message.length) return true
  if (sent >= 0) throw new LinuxError('sendmsg', 'EMSGSIZE')
  const code = libc().errno()
  if (code === 'EAGAIN' || code === 'EINTR') return undefined
  throw new LinuxError('sendmsg', code)
}

function receiveNow(
  fd: number,
  maxBytes: number,
): { packet: { message: Uint8Array; descriptors: number[] } | undefined } | undefined {
  const message = Buffer.allocUnsafeSlow(maxBytes)
  const control = Buffer.alloc(controlHeaderBytes + 4 * (maxDescriptors + 1))
  const header = messageHeader(message, control)
  const received = libc().recvmsg(fd, header.bytes, c.MSG_DONTWAIT | c.MSG_CMSG_CLOEXEC)
  if (received < 0) {
    const code = libc().errno()
    if (code === 'EAGAIN' || code === 'EINTR') return undefined
    if (code === 'ECONNRESET') return { packet: undefined }
    throw new LinuxError('recvmsg', code)
  }
  const descriptors = decodeDescriptors(control.subarray(0, header.controlLength()))
  if ((header.flags() & (c.MSG_TRUNC | c.MSG_CTRUNC)) !== 0) {
    for (const descriptor of descriptors) closeSync(descriptor)
    throw new LinuxError('recvmsg', 'EMSGSIZE', `a packet or its descriptors did not fit in ${maxBytes} bytes`)
  }
  if (received === 0 && descriptors.length === 0) return { packet: undefined }
  return { packet: { message: Uint8Array.from(message.subarray(0, received)), descriptors } }
}

/** struct msghdr with one iovec; the same layout on x86-64 and arm64. */
function messageHeader(message: Uint8Array, control: Uint8Array | undefined) {
  const vector = Buffer.alloc(16)
  vector.writeBigUInt64LE(libc().addressOf(message), 0)
  vector.writeBigUInt64LE(BigInt(message.length), 8)
  const bytes = Buffer.alloc(56)
  bytes.writeBigUInt64LE(libc().addressOf(vector), 16)
  bytes.writeBigUInt64LE(1n, 24)
  if (control !== undefined) {
    bytes.writeBigUInt64LE(libc().addressOf(control), 32)
    bytes.writeBigUInt64LE(BigInt(control.length), 40)
  }
  return {
    bytes,
    /** Held so that what the header points to lives as long as the header. */
    vector,
    controlLength: () => Number(bytes.readBigUInt64LE(40)),
    flags: () => bytes.readInt32LE(48),
  }
}

/** One SCM_RIGHTS struct cmsghdr: length (8), level (4), type (4), descriptors. */
function encodeDescriptors(descriptors: readonly number[]): Uint8Array | undefined {
  if (descriptors.length === 0) return undefined
  const length = controlHeaderBytes + 4 * descriptors.length
  const control = Buffer.alloc(align(length))
  control.writeBigUInt64LE(BigInt(length), 0)
  control.writeInt32LE(c.SOL_SOCKET, 8)
  control.writeInt32LE(c.SCM_RIGHTS, 12)
  for (const [index, descriptor] of descriptors.entries()) {
    control.writeInt32LE(descriptor, controlHeaderBytes + 4 * index)
  }
  return control
}

function decodeDescriptors(control: Buffer): number[] {
  const descriptors: number[] = []
  let offset = 0
  while (offset + controlHeaderBytes <= control.length) {
    const length = Number(control.readBigUInt64LE(offset))
    if (length < controlHeaderBytes) break
    const rights = control.readInt32LE(offset + 8) === c.SOL_SOCKET && control.readInt32LE(offset + 12) === c.SCM_RIGHTS
    for (let at = offset + controlHeaderBytes; rights && at + 4 <= offset + length; at += 4) {
      descriptors.push(control.readInt32LE(at))
    }
    offset += align(length)
  }
  return descriptors
}

function align(length: number): number {
  return (length + 7) & ~7
}
