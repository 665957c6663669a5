// The way from the proxy of a pod to the application in it.
import type { RelayEnd } from '../../hbone/index.ts'
import type { SocketAddress } from '../model.ts'
import { describeFailure } from './errors.ts'
import { tcpEnd } from './forward.ts'
import { connectOptions, type PodContext } from './pod-context.ts'
import { connectTcp } from './sockets.ts'

export interface ApplicationTarget {
  readonly to: SocketAddress
  /** The client. */
  readonly from: SocketAddress
  /** The application is to see the client's address; where that cannot be had it sees the pod's, and the log says so. */
  readonly keepSource: boolean
  /** Sent before anything else. */
  readonly header?: Buffer | undefined
}

/** Rejects with a ConnectionError; an abort rejects with its reason. */
export async function connectApplication(
  context: PodContext,
  { to, from, keepSource, header }: ApplicationTarget,
  signal: AbortSignal,
): Promise<RelayEnd> {
  const { log } = context.services
  const source = {
    sourceIp: from.ip,
    onSourceLost: (error: unknown) =>
      log.warn('cannot keep the source address', { error: describeFailure(error).error }),
  }
  const socket = await connectTcp(to, { ...connectOptions(context), ...(keepSource ? source : {}) }, signal)
  if (header !== undefined) socket.write(header)
  return tcpEnd(socket)
}
