// Asking one name server one question, over a socket of a pod's network namespace.
import dgram from 'node:dgram'
import net from 'node:net'
import { createSocket, type NetworkNamespace } from '../../linux/index.ts'
import type { SocketAddress } from '../model.ts'
import { formatAddress, ipFamily } from '../state/address.ts'
import { DnsError } from './errors.ts'
import { readMessage } from './message.ts'

export interface ExchangeOptions {
  readonly server: SocketAddress
  readonly protocol: 'udp' | 'tcp'
  /** Where the socket is created; without it, in the process's own namespace. */
  readonly namespace?: NetworkNamespace
  readonly timeoutMs: number
}

/** Sends the message and returns the answer to it. Rejects with a DnsError. */
export type Exchange = (message: Buffer, options: ExchangeOptions) => Promise<Buffer>

export interface TransportOptions {
  /** SO_MARK of every socket. */
  readonly mark?: number
  /** Bound of a TCP connect. */
  readonly connectTimeoutMs?: number
}

export function createExchange(options: TransportOptions = {}): Exchange {
  return (message, exchange) =>
    exchange.protocol === 'udp' ? exchangeUdp(message, exchange, options) : exchangeTcp(message, exchange, options)
}

function openDescriptor(exchange: ExchangeOptions, type: 'stream' | 'datagram', { mark }: TransportOptions): number {
  const family = ipFamily(exchange.server.ip)
  return createSocket({ family, type, ...(mark === undefined ? {} : { mark }) }, exchange.namespace).fd
}

async function exchangeUdp(message: Buffer, exchange: ExchangeOptions, options: TransportOptions): Promise<Buffer> {
  const { server, timeoutMs } = exchange
  const fd = openDescriptor(exchange, 'datagram', options)
  const socket = dgram.createSocket(ipFamily(server.ip) === 4 ? 'udp4' : 'udp6')
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
  const timer = setTimeout(() => reject(timedOut(server)), timeoutMs)
  try {
    socket.on('error', (error) => reject(failed(server, error)))
    socket.on('message', (answer) => {
      if (isAnswerTo(message, answer)) resolve(answer)
    })
    socket.bind({ fd, exclusive: true }, () => {
      // A connected socket takes answers of this server only.
      socket.connect(server.port, server.ip, (error?: Error) => {
        if (error) reject(failed(server, error))
        else socket.send(message)
      })
    })
    return await promise
  } finally {
    clearTimeout(timer)
    socket.close()
  }
}

async function exchangeTcp(message: Buffer, exchange: ExchangeOptions, options: TransportOptions): Promise<Buffer> {
  const { server, timeoutMs } = exchange
  const settings = { fd: openDescriptor(exchange, 'stream', options), manualStart: true }
  const socket = new net.Socket(settings)
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
  const expire = (): void => reject(timedOut(server))
  let timer = setTimeout(expire, options.connectTimeoutMs ?? 5000)
  try {
    let received = Buffer.alloc(0)
    socket.on('error', (error) => reject(failed(server, error)))
    socket.on('close', () => reject(new DnsError('UPSTREAM_FAILED', `${formatAddress(server)} closed the connection`)))
    socket.on('data', (chunk) => {
      received = Buffer.concat([received, chunk])
      if (received.length < 2 || received.length < 2 + received.readUInt16BE(0)) return
      const answer = received.subarray(2, 2 + received.readUInt16BE(0))
      if (isAnswerTo(message, answer)) resolve(answer)
      else reject(new DnsError('UPSTREAM_FAILED', `${formatAddress(server)} answered another question`))
    })
    socket.connect({ host: server.ip, port: server.port }, () => {
      clearTimeout(timer)
      timer = setTimeout(expire, timeoutMs)
      const length = Buffer.alloc(2)
      length.writeUInt16BE(message.length)
      socket.write(Buffer.concat([length, message]))
    })
    return await promise
  } finally {
    clearTimeout(timer)
    socket.destroy()
  }
}

/** The same id and question; anything else is a stray or forged packet. */
function isAnswerTo(query: Buffer, answer: Buffer): boolean {
  try {
    const [asked, got] = [readMessage(query), readMessage(answer)]
    const isComplaint = got.questionCount === 0 && got.rcode !== 0
    return got.isResponse && got.id === asked.id && (isComplaint || got.question?.key === asked.question?.key)
  } catch {
    return false
  }
}

const timedOut = (server: SocketAddress): DnsError =>
  new DnsError('TIMEOUT', `${formatAddress(server)} did not answer in time`)

const failed = (server: SocketAddress, cause: Error): DnsError =>
  new DnsError('UPSTREAM_FAILED', `${formatAddress(server)}: ${cause.message}`, { cause })
