// What the handlers of one pod's connections share.
import type { Http2Options, PeerCheck, TlsCredentials, TlsOptions, TunnelPool } from '../../hbone/index.ts'
import type { NetworkNamespace } from '../../linux/index.ts'
import { identityOf } from '../decisions/index.ts'
import type { Identity, PodInfo, Workload } from '../model.ts'
import { errorTexts, type Reporter } from '../telemetry/index.ts'
import { ConnectionError } from './errors.ts'
import type { ConnectOptions } from './sockets.ts'
import type { ConnectionTracker } from './tracker.ts'
import type { DataPlaneOptions, DataPlaneServices } from './types.ts'

export interface PodContext {
  readonly pod: PodInfo
  readonly namespace: NetworkNamespace | undefined
  readonly options: DataPlaneOptions
  readonly services: DataPlaneServices
  readonly tracker: ConnectionTracker
  readonly pool: TunnelPool
  /** Aborts when the pod's proxy stops. */
  readonly stopping: AbortSignal
}

export function connectOptions({ namespace, options }: PodContext): ConnectOptions {
  return { namespace, mark: options.mark, keepalive: options.keepalive, timeoutMs: options.connectTimeoutMs }
}

/** Our own listeners, which traffic must not be sent to. */
export function illegalPorts({ ports }: DataPlaneOptions): ReadonlySet<number> {
  const { outbound, plaintext, hbone, socks5 } = ports
  return new Set([outbound, plaintext, hbone, ...(socks5 === undefined ? [] : [socks5])])
}

/** In which the pod is served. */
export function servedIdentity({ options }: Pick<PodContext, 'options'>, local: Workload): Identity {
  const { trustDomain } = options
  return identityOf(trustDomain === undefined ? local : { ...local, trustDomain })
}

async function credentialsOf(context: PodContext, identity: Identity): Promise<TlsCredentials> {
  try {
    return await context.services.credentials(identity)
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    throw new ConnectionError('IDENTITY_ERROR', errorTexts.identity(message), { cause: error })
  }
}

/**
 * What a tunnel connection is made with in this identity; the peer is checked for revocation, then by `check`. Rejects with a
 * ConnectionError when there is no certificate for the identity.
 */
export async function tunnelOptions(
  context: PodContext,
  identity: Identity,
  reporter: Reporter,
  check: PeerCheck,
): Promise<{ readonly http2: Http2Options; readonly tls: TlsOptions }> {
  const { http2, allowTls12, groups } = context.options
  const credentials = await credentialsOf(context, identity)
  const checkPeer = peerCheck(context, reporter, check)
  const wholeChain = context.services.revocations !== undefined
  return { http2, tls: { credentials, checkPeer, allowTls12, wholeChain, ...(groups === undefined ? {} : { groups }) } }
}

/** A check of the peer's identity, with revocation before it. */
function peerCheck({ services }: PodContext, reporter: Reporter, check: PeerCheck): PeerCheck {
  return (peer) => {
    const revoked = services.revocations?.check(peer.chain)
    if (revoked === undefined) return check(peer)
    services.metrics.crlRejections.with({ reporter }).inc()
    return revoked
  }
}
