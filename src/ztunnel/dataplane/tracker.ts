// The connections of one pod in progress: shown to operators, cut when the pod stops, judged again when policies change.
import type { X509Certificate } from 'node:crypto'
import type { AuthorizationDecision, AuthorizationRequest } from '../decisions/index.ts'
import { authorize } from '../decisions/index.ts'
import type { PodInfo, Workload } from '../model.ts'
import type { MeshFollower } from '../state/index.ts'
import { errorTexts } from '../telemetry/index.ts'
import { ConnectionError } from './errors.ts'
import type { LiveConnection } from './types.ts'

export interface TrackedConnection {
  readonly live: LiveConnection
  /** Inbound connections: what policies are asked about it. */
  readonly authorization?: Omit<AuthorizationRequest, 'destinationWorkload'>
  /** The certificates of the tunnel's other end, once they are known. */
  readonly peerChain?: () => readonly X509Certificate[] | undefined
  /** Ends the connection at once; may be called more than once. */
  cut(error: ConnectionError): void
}

export interface ConnectionTracker {
  /** Until the returned function is called, the connection is cut when it must not go on. */
  track(connection: TrackedConnection): () => void
  /** True the first time that a policy is missed, and again after policies have changed: once is enough to be told. */
  isNewlyMissed(policy: string): boolean
  list(): readonly LiveConnection[]
  cutAll(error: ConnectionError): void
  cutRevoked(isRevoked: (chain: readonly X509Certificate[]) => boolean): void
  /** Resolves when no connection is left. */
  empty(): Promise<void>
  close(): void
}

export interface TrackerOptions {
  readonly state: MeshFollower
  readonly pod: PodInfo
  /** Told of each connection that a change of policies ends. */
  readonly onPolicyEnd: (connection: LiveConnection, decision: AuthorizationDecision) => void
}

export function createConnectionTracker({ state, pod, onPolicyEnd }: TrackerOptions): ConnectionTracker {
  const tracked = new Set<TrackedConnection>()
  const waiting = new Set<() => void>()
  const missed = new Set<string>()
  let workload: Workload | undefined = state.localWorkload(pod)

  const unsubscribe = state.onChange(({ policies }) => {
    if (policies) missed.clear()
    const before = workload
    workload = state.localWorkload(pod) ?? workload
    if (workload === undefined || (!policies && workload === before)) return
    for (const connection of [...tracked]) {
      if (connection.authorization === undefined) continue
      const decision = authorize(state, { ...connection.authorization, destinationWorkload: workload })
      if (decision.allowed) continue
      onPolicyEnd(connection.live, decision)
      connection.cut(new ConnectionError('DENY', errorTexts.policyChange))
    }
  })

  return {
    track(connection) {
      tracked.add(connection)
      return () => {
        tracked.delete(connection)
        if (tracked.size > 0) return
        for (const resolve of waiting) resolve()
        waiting.clear()
      }
    },
    isNewlyMissed(policy) {
      if (missed.has(policy)) return false
      missed.add(policy)
      return true
    },
    list: () => [...tracked].map(({ live }) => live),
    cutAll(error) {
      for (const connection of [...tracked]) connection.cut(error)
    },
    cutRevoked(isRevoked) {
      for (const connection of [...tracked]) {
        const chain = connection.peerChain?.()
        if (chain === undefined || !isRevoked(chain)) continue
        connection.cut(new ConnectionError('CERT_REVOKED', errorTexts.revoked))
      }
    },
    empty() {
      if (tracked.size === 0) return Promise.resolve()
      return new Promise((resolve) => waiting.add(resolve))
    },
    close: unsubscribe,
  }
}
