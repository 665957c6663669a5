// The authority when another signer of the cluster certifies: it decides who may have which certificate, and has it signed there.
import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createRegistrationAuthority, type SignInCluster } from '../ca/index.ts'
import type { MeshConfig } from '../config/index.ts'
import type { Scope } from '../observability/index.ts'
import { certificateBlocks } from '../util/index.ts'
import type { OpenAuthority } from './authority.ts'
import type { CertificateSettings } from './certificate-settings.ts'
import { servingFromCluster } from './cluster-serving.ts'
import { SettingError } from './setting-reader.ts'

export interface RegistrationOptions {
  readonly signer: Extract<CertificateSettings['signer'], { kind: 'kubernetes' }>
  readonly certificates: CertificateSettings
  readonly defaultTtlSeconds: number
  readonly maxTtlSeconds: number
  readonly mesh: () => MeshConfig
  readonly signInCluster: SignInCluster
  readonly log: Scope
}

export function openRegistration(options: RegistrationOptions): OpenAuthority {
  const { signer, certificates, log, signInCluster } = options
  const rootsOf = rootsOfSigners(certificates, options.mesh)
  const registration = createRegistrationAuthority({ ...options, ...signer, signInCluster, rootsOf })
  const listeners = new Set<() => void>()
  const serving = servingFromCluster({
    signInCluster,
    signerName: certificates.servingSigner || signer.defaultSigner,
    rootsOf,
    maxTtlSeconds: options.maxTtlSeconds,
  })
  const tell = (): void => {
    for (const listener of [...listeners]) listener()
  }
  registration.subscribe(tell)
  log.info('certificates are signed by the cluster', { signer: signer.defaultSigner || `${signer.certSignerDomain}/…` })

  return {
    authority: {
      sign: registration.sign,
      get rootBundle() {
        return registration.rootBundle
      },
      get expiry() {
        const first = firstEnd(registration.rootBundle)
        return first === undefined ? undefined : { root: first, chain: first }
      },
      crl: undefined,
      issueServingCertificate(names, ttlSeconds) {
        if (certificates.servingSigner === '' && signer.defaultSigner === '') {
          throw new SettingError('PILOT_CERT_PROVIDER: k8s.io/<signer> must name the signer of our own certificate')
        }
        return serving.issue(names, ttlSeconds)
      },
      subscribe(listener) {
        listeners.add(listener)
        return () => void listeners.delete(listener)
      },
    },
    follow: (signal) => serving.follow(tell, signal),
    rotate: async () => {},
  }
}

/** Of configured roots that cannot be read nobody knows when they end; requests that need them are refused with the reason. */
export function firstEnd(rootsPem: string): Date | undefined {
  const ends = certificateBlocks(rootsPem).flatMap((pem) => {
    try {
      return [new X509Certificate(pem).validToDate]
    } catch {
      return []
    }
  })
  return ends.toSorted((a, b) => a.getTime() - b.getTime())[0]
}

/** The roots of a signer: of the mounted file if there is one, else of mesh config. */
export function rootsOfSigners(
  { externalRootFile }: Pick<CertificateSettings, 'externalRootFile'>,
  mesh: () => MeshConfig,
): (signerName: string) => string {
  return (name) => readIfThere(externalRootFile) ?? rootsInMeshConfig(mesh(), name)
}

/** Of `caCertificates` those that are named for the signer. */
export function rootsInMeshConfig({ fields }: Pick<MeshConfig, 'fields'>, signerName: string): string {
  const entries: readonly unknown[] = Array.isArray(fields.caCertificates) ? fields.caCertificates : []
  return entries
    .flatMap((entry) => {
      const { pem, certSigners } = (entry ?? {}) as { readonly pem?: unknown; readonly certSigners?: unknown }
      const isForIt = Array.isArray(certSigners) && certSigners.includes(signerName)
      return typeof pem === 'string' && isForIt ? [pem] : []
    })
    .join('\n')
}

function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  }
}
