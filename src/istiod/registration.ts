// The authority when another signer of the cluster certifies: it decides who may have which certificate, and has it signed there.
import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  certificateBlocks,
  chainWithRoot,
  createRegistrationAuthority,
  createServingRequest,
  type ServingCertificate,
  type SignInCluster,
} from '../ca/index.ts'
import type { MeshConfig } from '../config/index.ts'
import type { Scope } from '../observability/index.ts'
import type { OpenAuthority } from './authority.ts'
import type { CertificateSettings } from './certificate-settings.ts'

export interface RegistrationOptions {
  readonly signer: Extract<CertificateSettings['signer'], { kind: 'kubernetes' }>
  readonly certificates: CertificateSettings
  readonly defaultTtlSeconds: number
  readonly maxTtlSeconds: number
  readonly mesh: () => MeshConfig
  readonly signInCluster: SignInCluster
  readonly log: Scope
}

const servingUsages = ['digital signature', 'key encipherment', 'server auth']
const retryMs = 10_000

export function openRegistration(options: RegistrationOptions): OpenAuthority {
  const { signer, certificates, log, signInCluster } = options
  const rootsOf = (name: string): string =>
    readIfThere(certificates.externalRootFile) ?? rootsInMeshConfig(options.mesh(), name)
  const registration = createRegistrationAuthority({ ...options, ...signer, signInCluster, rootsOf })
  const listeners = new Set<() => void>()
  let serving: ServingCertificate | undefined
  const tell = (): void => {
    for (const listener of [...listeners]) listener()
  }
  registration.subscribe(tell)
  log.info('certificates are signed by the cluster', { signer: signer.defaultSigner || `${signer.certSignerDomain}/…` })

  async function issueServingCertificate(names: readonly string[], ttlSeconds: number): Promise<ServingCertificate> {
    const { csrPem, privateKey } = await createServingRequest(names)
    const signerName = certificates.servingSigner || signer.defaultSigner
    if (signerName === '')
      throw new Error('PILOT_CERT_PROVIDER: k8s.io/<signer> must name the signer of our own certificate')
    const expirationSeconds = Math.min(ttlSeconds, options.maxTtlSeconds)
    const signed = await signInCluster({ csrPem, signerName, expirationSeconds, usages: servingUsages })
    const chain = chainWithRoot(signed, rootsOf(signerName))
    const [leaf = ''] = chain
    const certificate = new X509Certificate(leaf)
    serving = {
      privateKey,
      chain: chain.slice(0, -1).join(''),
      roots: chain.at(-1) ?? '',
      notAfter: certificate.validToDate,
    }
    return serving
  }

  /** Has the serving certificate renewed at half of its life. */
  async function follow(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const half = serving === undefined ? retryMs : (serving.notAfter.getTime() - Date.now()) / 2
      try {
        await sleep(Math.min(Math.max(half, retryMs), 2 ** 31 - 1), undefined, { signal, ref: false })
      } catch {
        return
      }
      tell()
    }
  }

  return {
    authority: {
      sign: registration.sign,
      get rootBundle() {
        return registration.rootBundle
      },
      get expiry() {
        const ends = certificateBlocks(registration.rootBundle).map((pem) => new X509Certificate(pem).validToDate)
        const first = ends.toSorted((a, b) => a.getTime() - b.getTime())[0]
        return first === undefined ? undefined : { root: first, chain: first }
      },
      crl: undefined,
      issueServingCertificate,
      subscribe(listener) {
        listeners.add(listener)
        return () => void listeners.delete(listener)
      },
    },
    follow,
    rotate: async () => {},
  }
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
