// Follows the node agent: connects, says hello, carries out one message after the other, and connects again.
import { setTimeout as sleep } from 'node:timers/promises'
import { connectSeqpacket, type SeqpacketConnection } from '../../linux/index.ts'
import type { Scope } from '../../observability/index.ts'
import { type Pods, ZdsProtocolError } from './pods.ts'
import { type AgentMessage, decodeAgentPacket, encodeAck, encodeHello, maxPacketBytes } from './zds-messages.ts'

export interface ZdsClientOptions {
  readonly socketPath: string
  readonly pods: Pods
  readonly log: Scope
  /** Told whenever readiness may have changed. */
  readonly onReadiness: (ready: boolean) => void
  /** For the spread of waits. */
  readonly random: () => number
}

const connectWaits = { leastMs: 20, mostMs: 15_000 }
/** After a stream that failed, or on which the agent said nothing. */
const streamWaits = { leastMs: 5, mostMs: 15_000 }

/** Runs until the signal aborts, then resolves. Rejects with a ZdsProtocolError when the agent breaks the protocol. */
export async function followNodeAgent(options: ZdsClientOptions, signal: AbortSignal): Promise<void> {
  let waitMs = streamWaits.leastMs
  options.onReadiness(false)
  while (!signal.aborted) {
    const connection = await connectPatiently(options, signal)
    if (connection === undefined) return
    const close = () => connection.close()
    signal.addEventListener('abort', close)
    let wasOrderly = false
    const endRetries = options.pods.onRetry(() => options.onReadiness(options.pods.ready))
    try {
      options.pods.beginStream()
      await connection.send(encodeHello())
      options.log.info('connected to the node agent', { socket: options.socketPath })
      await serveStream(connection, options, () => {
        waitMs = streamWaits.leastMs
        wasOrderly = true
      })
      options.log.info('the node agent ended the connection')
    } catch (error) {
      if (error instanceof ZdsProtocolError) throw error
      wasOrderly = false
      if (!signal.aborted) options.log.warn('connection to the node agent lost', { error: asError(error) })
    } finally {
      signal.removeEventListener('abort', close)
      endRetries()
      connection.close()
      if (!signal.aborted) options.onReadiness(false)
    }
    if (wasOrderly) continue
    await pause(waitMs * (0.8 + 0.4 * options.random()), signal)
    waitMs = Math.min(waitMs * 2, streamWaits.mostMs)
  }
}

async function connectPatiently(
  { socketPath, log }: ZdsClientOptions,
  signal: AbortSignal,
): Promise<SeqpacketConnection | undefined> {
  let waitMs = connectWaits.leastMs
  while (!signal.aborted) {
    try {
      return connectSeqpacket(socketPath)
    } catch (error) {
      log.warn('failed to connect to the node agent', { socket: socketPath, error: asError(error) })
    }
    await pause(waitMs, signal)
    waitMs = Math.min(waitMs * 2, connectWaits.mostMs)
  }
  return undefined
}

async function serveStream(
  connection: SeqpacketConnection,
  { pods, onReadiness }: ZdsClientOptions,
  onMessage: () => void,
): Promise<void> {
  for (;;) {
    const message = await nextMessage(connection)
    if (message === undefined) return
    onMessage()
    try {
      const error = await pods.handle(message)
      onReadiness(pods.ready)
      await connection.send(encodeAck(error))
    } catch (error) {
      if (!(error instanceof ZdsProtocolError)) throw error
      await connection.send(encodeAck(`failure to process message : ${error.message}`)).catch(() => undefined)
      throw error
    }
  }
}

async function nextMessage(connection: SeqpacketConnection): Promise<AgentMessage | undefined> {
  try {
    const packet = await connection.receive({ maxBytes: maxPacketBytes })
    return packet && decodeAgentPacket(packet)
  } catch (error) {
    const text = asError(error).message
    await connection.send(encodeAck(`failure to read message : ${text}`)).catch(() => undefined)
    throw error
  }
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch(() => undefined)
}

const asError = (error: unknown) => (error instanceof Error ? error : new Error(String(error)))
