// Certificates for the data plane: fetched ahead for the node's workloads, handed out in the form that TLS takes.
import type { X509Certificate } from 'node:crypto'
import type { TlsCredentials } from '../hbone/index.ts'
import type { Scope } from '../observability/index.ts'
import {
  CertificateError,
  type CertificateManager,
  createCertificateManager,
  createKnownAuthorities,
  createPrefetch,
  type WorkloadCertificate,
} from './certificates/index.ts'
import type { ZtunnelConfig } from './config/index.ts'
import { connectCa } from './control-plane.ts'
import { spiffeId } from './decisions/index.ts'
import type { Identity } from './model.ts'
import type { MeshState } from './state/index.ts'

export interface CertificateSource {
  readonly manager: CertificateManager
  /** The same certificate is the same value. */
  credentials(identity: Identity): Promise<TlsCredentials>
  /** Intermediates and roots that came with our own certificates. */
  authorities(): readonly X509Certificate[]
  close(): void
}

/** Follows the workloads of the node. Without a CA every request for a certificate fails. */
export function openCertificateSource(config: ZtunnelConfig, state: MeshState, log: Scope): CertificateSource {
  const ca = config.ca === undefined ? undefined : connectCa(config, config.ca, log)
  const manager = createCertificateManager({
    requestCertificate: async (identity, signal) => {
      if (ca === undefined) throw new CertificateError('CA_CONFIGURATION', 'no certificate authority is configured')
      return ca.requestCertificate(identity, signal)
    },
    onFailure: (identity, error) => log.warn('certificate not available', { identity, error }),
  })
  const follow = config.mode === 'shared' ? createPrefetch(manager, config.node) : undefined
  for (const workload of state.workloads()) follow?.(undefined, workload)
  const unfollow = state.subscribeLocal((changes) => {
    for (const change of changes) follow?.(change.old, change.new)
  })
  const known = new WeakMap<WorkloadCertificate, TlsCredentials>()
  const authorities = createKnownAuthorities()

  function credentialsFrom(certificate: WorkloadCertificate): TlsCredentials {
    authorities.learn(...certificate.intermediates, ...certificate.roots)
    return {
      privateKey: certificate.privateKey,
      certificateChain: [certificate.leaf, ...certificate.intermediates].join('\n'),
      roots: certificate.roots.join('\n'),
    }
  }

  return {
    manager,
    async credentials(identity) {
      const certificate = await manager.get(spiffeId(identity), 'RealTime')
      const credentials = known.get(certificate) ?? credentialsFrom(certificate)
      known.set(certificate, credentials)
      return credentials
    },
    authorities: () => authorities.list(),
    close() {
      unfollow()
      manager.close()
      ca?.close()
    },
  }
}
