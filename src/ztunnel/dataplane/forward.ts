// The common course of a connection once its destination is decided: track, authorize, connect, copy, report.
import type { X509Certificate } from 'node:crypto'
import type { Socket } from 'node:net'
import { type RelayEnd, relay } from '../../hbone/index.ts'
import { resetSocket } from '../../linux/index.ts'
import type { AuthorizationDecision, AuthorizationRequest } from '../decisions/index.ts'
import { type ConnectionFacts, type ConnectionFailure, type ConnectionReports, errorTexts } from '../telemetry/index.ts'
import { ConnectionError, describeBreak, describeFailure } from './errors.ts'
import type { ConnectionTracker } from './tracker.ts'
import type { LiveConnection } from './types.ts'

export const tcpEnd = (stream: Socket): RelayEnd => ({ stream, reset: () => resetSocket(stream) })

export interface Upstream {
  readonly end: RelayEnd
  /** Of an outbound tunnel; of one inside another those of both. */
  readonly peerChain?: readonly X509Certificate[]
  /** What the far end of a tunnel inside a tunnel told about itself. */
  readonly remoteDestination?: ConnectionFacts['remoteDestination']
}

export interface Forwarding {
  readonly facts: ConnectionFacts
  readonly live: LiveConnection
  readonly authorization?: Omit<AuthorizationRequest, 'destinationWorkload'>
  /** Of an inbound tunnel. */
  readonly peerChain?: readonly X509Certificate[]
  /** Asked once the connection is tracked, so that no change of policies falls between. */
  authorize?(): AuthorizationDecision
  /** Aborts when the client gives up while the upstream is being connected. */
  readonly clientGone: AbortSignal
  connectUpstream(signal: AbortSignal): Promise<Upstream>
  /** Called when the upstream is ready: the client's side of the relay. */
  acceptClient(): RelayEnd
  /** Called instead when there will be no upstream. */
  refuseClient(failure: ConnectionFailure): void
}

/** Carries one connection from its decision to its end. Never rejects. */
export async function forward(
  forwarding: Forwarding,
  services: { readonly tracker: ConnectionTracker; readonly reports: ConnectionReports },
): Promise<void> {
  const { facts, live, authorization, clientGone } = forwarding
  const report = services.reports.open(facts)
  // Aborts when the client gives up, too: a signal composed of both would cost as much as a connection's routing.
  const connecting = new AbortController()
  const giveUp = () => connecting.abort(clientGone.reason)
  if (clientGone.aborted) giveUp()
  else clientGone.addEventListener('abort', giveUp)
  let cutBy: ConnectionError | undefined
  let cutRelay: ((error: Error) => void) | undefined
  let peerChain = forwarding.peerChain
  const untrack = services.tracker.track({
    live,
    peerChain: () => peerChain,
    ...(authorization === undefined ? {} : { authorization }),
    cut(error: ConnectionError) {
      cutBy ??= error
      connecting.abort(error)
      cutRelay?.(error)
    },
  })
  try {
    const decision = forwarding.authorize?.()
    if (decision?.allowed === false) {
      throw new ConnectionError('DENY', errorTexts.policyRejection(decision.reason))
    }
    const upstream = await forwarding.connectUpstream(connecting.signal)
    peerChain ??= upstream.peerChain
    if (cutBy !== undefined) {
      upstream.end.reset()
      throw cutBy
    }
    if (upstream.remoteDestination !== undefined) report.setRemoteDestination(upstream.remoteDestination)
    const running = relay(forwarding.acceptClient(), upstream.end, {
      firstToSecond: (bytes) => report.received(bytes),
      secondToFirst: (bytes) => report.sent(bytes),
    })
    cutRelay = running.abort
    const { error, brokenEnd } = await running.done
    report.close(error === undefined ? undefined : describeBreak(error, brokenEnd))
  } catch (error) {
    const { aborted, reason } = connecting.signal
    const failure = describeFailure(cutBy ?? (aborted ? reason : error))
    forwarding.refuseClient(failure)
    report.close(failure)
  } finally {
    clientGone.removeEventListener('abort', giveUp)
    untrack()
  }
}
