// Sees the IP packets that pass through a network namespace's interfaces, as tcpdump does.
import { closeSync, readSync } from 'node:fs'
import { SOCK_CLOEXEC, SOCK_DGRAM, SOCK_NONBLOCK, SOL_SOCKET } from './constants.ts'
import { checked, libc } from './libc.ts'
import { runInNamespace } from './namespace.ts'
import { announceActivity, untilReady } from './readiness.ts'
import type { NetworkNamespace } from './types.ts'

const AF_PACKET = 17
/** ETH_P_ALL in network byte order. */
const allProtocols = 0x0300
const SO_RCVBUF = 8
const SO_RCVBUFFORCE = 33
const kernelBufferBytes = 32 * 1024 * 1024
const maxPacketBytes = 256 * 1024

/**
 * Calls the listener with every packet on any interface of the namespace, from the IP header on. The bytes are valid during the call only.
 * A packet that crosses several interfaces is seen on each. Needs CAP_NET_RAW. Ends with dispose.
 */
export function capturePackets(
  namespace: NetworkNamespace | undefined,
  onPacket: (packet: Uint8Array) => void,
): AsyncDisposable {
  const fd = runInNamespace(namespace, () =>
    checked(
      'socket',
      libc().socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, allProtocols),
      'packet socket',
    ),
  )
  const size = Buffer.alloc(4)
  size.writeInt32LE(kernelBufferBytes)
  // Beyond the system's limit needs a privilege over the whole machine; without it, the limit has to do.
  if (libc().setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, size, size.length) !== 0) {
    checked('setsockopt', libc().setsockopt(fd, SOL_SOCKET, SO_RCVBUF, size, size.length))
  }
  announceActivity(fd)
  const buffer = Buffer.allocUnsafe(maxPacketBytes)
  const closing = new AbortController()
  const drain = (): undefined => {
    for (;;) {
      let length: number
      try {
        length = readSync(fd, buffer)
      } catch (error) {
        const { code } = error as NodeJS.ErrnoException
        if (code === 'EAGAIN' || code === 'EINTR') return
        if (code === 'ENETDOWN') continue
        throw error
      }
      onPacket(buffer.subarray(0, length))
    }
  }
  const ended = untilReady<never>(drain, closing.signal).catch((error: unknown) => {
    if (!closing.signal.aborted) throw error
  })
  return {
    [Symbol.asyncDispose]: async () => {
      drain()
      closing.abort()
      await ended
      closeSync(fd)
    },
  }
}
