// The server's side of the SOCKS5 handshake on an accepted socket.
import type { Socket } from 'node:net'
import type { SocketAddress } from '../model.ts'
import {
  encodeReply,
  noAcceptableMethod,
  noAuthentication,
  type Reading,
  readGreeting,
  readRequest,
  replies,
} from './messages.ts'

export interface HandshakeOptions {
  /** An address of a host name; undefined when there is none. */
  readonly resolve: (hostname: string) => Promise<string | undefined>
  /** For the client's part of the handshake. */
  readonly timeoutMs?: number
}

export type Handshake =
  | { readonly kind: 'target'; readonly address: SocketAddress }
  /** The client has been answered and its connection closed. */
  | { readonly kind: 'failed'; readonly error: string }

const defaultTimeoutMs = 10_000
/** The longest message: a request with a host name. */
const mostBytes = 4 + 1 + 255 + 2

/** Learns where the client wants to go and tells it to go on. The socket is paused before and after; never rejects. */
export async function handshake(socket: Socket, options: HandshakeOptions): Promise<Handshake> {
  const reader = createReader(socket, options.timeoutMs ?? defaultTimeoutMs)
  const fail = (error: string, answer?: Buffer): Handshake => {
    if (answer === undefined) socket.destroy()
    // The client may go on talking: what it says is not wanted, but the answer is to reach it.
    else socket.end(answer, () => socket.destroy())
    return { kind: 'failed', error }
  }
  try {
    const greeting = await reader.read(readGreeting)
    if (greeting.kind === 'violation') return fail(`socks5: ${greeting.error}`, noAcceptableMethod)
    socket.write(noAuthentication)
    const request = await reader.read(readRequest)
    if (request.kind === 'violation') {
      return fail(`socks5: ${request.error}`, encodeReply(replies.commandNotSupported))
    }
    const target = request.value
    if (target.kind === 'address') return succeed(target.address)
    const ip = await options.resolve(target.hostname)
    if (ip === undefined) {
      return fail(`socks5: ${target.hostname} has no address`, encodeReply(replies.hostUnreachable))
    }
    return succeed({ ip, port: target.port })
  } catch (error) {
    return fail(`socks5: ${error instanceof Error ? error.message : String(error)}`)
  } finally {
    reader.close()
  }

  function succeed(address: SocketAddress): Handshake {
    reader.close()
    socket.write(encodeReply(replies.succeeded))
    return { kind: 'target', address }
  }
}

type Outcome<T> = Exclude<Reading<T>, { kind: 'incomplete' }>

interface Reader {
  /** The next message. Rejects when the client leaves or takes too long. */
  read<T>(parse: (bytes: Uint8Array) => Reading<T>): Promise<Outcome<T>>
  /** Pauses the socket and gives back what was not part of a message. */
  close(): void
}

function createReader(socket: Socket, timeoutMs: number): Reader {
  let bytes = Buffer.alloc(0)
  let ended: Error | undefined
  let isOpen = true
  let wake = (): void => undefined
  const end = (error: Error): void => {
    ended ??= error
    wake()
  }
  const onData = (chunk: Buffer): void => {
    bytes = Buffer.concat([bytes, chunk])
    if (bytes.length > mostBytes) socket.pause()
    wake()
  }
  const onEnd = (): void => end(new Error('the client left during the handshake'))
  const timer = setTimeout(() => end(new Error('the handshake took too long')), timeoutMs)
  socket.on('data', onData)
  socket.on('end', onEnd)
  socket.on('close', onEnd)
  socket.resume()
  return {
    async read(parse) {
      for (;;) {
        const reading = parse(bytes)
        if (reading.kind === 'message') bytes = bytes.subarray(reading.length)
        if (reading.kind !== 'incomplete') return reading
        if (ended !== undefined) throw ended
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      }
    },
    close() {
      if (!isOpen) return
      isOpen = false
      clearTimeout(timer)
      socket.off('data', onData)
      socket.off('end', onEnd)
      socket.off('close', onEnd)
      socket.pause()
      if (bytes.length > 0) socket.unshift(bytes)
    },
  }
}
