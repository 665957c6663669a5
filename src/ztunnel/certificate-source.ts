// Certificates for the data plane: fetched ahead for the node's workloads, renewed, and told to who carries connections.
import type { Scope } from '../observability/index.ts'
import {
  CertificateError,
  type CertificateManager,
  createCertificateManager,
  createPrefetch,
  type WorkloadCertificate,
} from './certificates/index.ts'
import type { ZtunnelConfig } from './config/index.ts'
import { connectCa } from './control-plane.ts'
import type { MeshState } from './state/index.ts'

export interface CertificateSource {
  readonly manager: CertificateManager
  /** For a connection that waits; by SPIFFE id. */
  get(identity: string): Promise<WorkloadCertificate>
  close(): void
}

/** Told of each certificate as it arrives; without one when it is no longer needed. */
export type CertificateListener = (identity: string, certificate: WorkloadCertificate | undefined) => void

/** Follows the workloads of the node. Without a CA every request for a certificate fails. */
export function openCertificateSource(
  config: ZtunnelConfig,
  given: { readonly state: MeshState; readonly log: Scope; readonly onCertificate: CertificateListener },
): CertificateSource {
  const { state, log, onCertificate } = given
  const ca = config.ca === undefined ? undefined : connectCa(config, config.ca, log)
  const manager = createCertificateManager({
    requestCertificate: async (identity, signal) => {
      if (ca === undefined) throw new CertificateError('CA_CONFIGURATION', 'no certificate authority is configured')
      return ca.requestCertificate(identity, signal)
    },
    onCertificate,
    onFailure: (identity, error) => log.warn('certificate not available', { identity, error }),
  })
  const follow = config.mode === 'shared' ? createPrefetch(manager, config.node) : undefined
  for (const workload of state.workloads()) follow?.(undefined, workload)
  const unfollow = state.subscribeLocal((changes) => {
    for (const change of changes) follow?.(change.old, change.new)
  })
  return {
    manager,
    get: (identity) => manager.get(identity, 'RealTime'),
    close() {
      unfollow()
      manager.close()
      ca?.close()
    },
  }
}
