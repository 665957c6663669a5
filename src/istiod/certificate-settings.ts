// The settings of the certificate authority beyond lifetimes and directory: who signs, where material is kept, how roots are renewed and handed out.
import { parseGoDuration } from '../util/index.ts'
import { type Environment, SettingError, settingReader } from './setting-reader.ts'

export interface CertificateSettings {
  readonly signer:
    | { readonly kind: 'own' }
    /** Another signer of the cluster certifies what we approve. */
    | { readonly kind: 'kubernetes'; readonly defaultSigner: string; readonly certSignerDomain: string }
  /** Signer of our serving certificate when it is not the own CA; empty: the signer of workloads. */
  readonly servingSigner: string
  /** False: our serving certificate comes from files alone. */
  readonly issuesServing: boolean
  /** Holds the root of an external signer, if there is such a file. */
  readonly externalRootFile: string
  /** The Secret `cacerts` is read when no directory with signing files is mounted. */
  readonly readsSecret: boolean
  /** New self-signed material goes into the Secret `cacerts`. */
  readonly keepsInCacerts: boolean
  /** Changed signing files may add or remove roots. */
  readonly isMultiRoot: boolean
  readonly rootCheckSeconds: number
  readonly rootGraceRatio: number
  readonly rootCheckHasJitter: boolean
  /** How long the next root is trusted before it signs; undefined: roots are renewed with the same key. */
  readonly rootOverlapSeconds: number | undefined
  readonly rootConfigMap: string
  readonly crlConfigMap: string
  readonly distributesCrl: boolean
  /** The trust bundle goes into a ClusterTrustBundle instead of ConfigMaps. */
  readonly usesTrustBundles: boolean
}

/** Throws a SettingError that names the variable. */
export function readCertificateSettings(env: Environment): CertificateSettings {
  const read = settingReader(env)
  const grace = read.number('CITADEL_SELF_SIGNED_ROOT_CERT_GRACE_PERIOD_PERCENTILE', 20)
  if (grace > 100) {
    throw new SettingError(
      `CITADEL_SELF_SIGNED_ROOT_CERT_GRACE_PERIOD_PERCENTILE: expected a percentage, not "${grace}"`,
    )
  }
  const provider = env.PILOT_CERT_PROVIDER || 'istiod'
  return {
    signer: signer(env),
    servingSigner: servingSigner(provider),
    issuesServing: provider !== 'custom' && provider !== 'none',
    externalRootFile: './etc/external-ca-cert/root-cert.pem',
    readsSecret: read.flag('USE_REMOTE_CERTS', false),
    keepsInCacerts: read.flag('USE_CACERTS_FOR_SELF_SIGNED_CA', false),
    isMultiRoot: read.flag('ISTIO_MULTIROOT_MESH', false),
    rootCheckSeconds: rootCheckSeconds(env),
    rootGraceRatio: grace / 100,
    rootCheckHasJitter: read.flag('CITADEL_ENABLE_JITTER_FOR_ROOT_CERT_ROTATOR', true),
    rootOverlapSeconds: read.flag('LATEEN_ROOT_ROTATION_NEW_KEY', true)
      ? read.duration('LATEEN_ROOT_ROTATION_OVERLAP', 48 * 3_600_000) / 1000
      : undefined,
    rootConfigMap: env.PILOT_CA_CERT_CONFIGMAP || 'istio-ca-root-cert',
    crlConfigMap: env.PILOT_CRL_CONFIGMAP || 'istio-ca-crl',
    distributesCrl: read.flag('PILOT_ENABLE_CA_CRL', true),
    usesTrustBundles: read.flag('ENABLE_CLUSTER_TRUST_BUNDLE_API', false),
  }
}

/** Nothing or less: the root is not looked at. */
function rootCheckSeconds(env: Environment): number {
  const text = env.CITADEL_SELF_SIGNED_ROOT_CERT_CHECK_INTERVAL || '1h'
  const ms = parseGoDuration(text)
  if (ms === undefined) {
    throw new SettingError(
      `CITADEL_SELF_SIGNED_ROOT_CERT_CHECK_INTERVAL: expected a duration such as 1h, not "${text}"`,
    )
  }
  return Math.max(0, ms) / 1000
}

function signer(env: Environment): CertificateSettings['signer'] {
  const external = env.EXTERNAL_CA ?? ''
  if (external === '') return { kind: 'own' }
  if (external !== 'ISTIOD_RA_KUBERNETES_API') {
    throw new SettingError(`EXTERNAL_CA: expected ISTIOD_RA_KUBERNETES_API or nothing, not "${external}"`)
  }
  const defaultSigner = env.K8S_SIGNER ?? ''
  const certSignerDomain = env.CERT_SIGNER_DOMAIN ?? ''
  if (defaultSigner === '' && certSignerDomain === '') {
    throw new SettingError('EXTERNAL_CA: K8S_SIGNER or CERT_SIGNER_DOMAIN must name the signer')
  }
  return { kind: 'kubernetes', defaultSigner, certSignerDomain }
}

function servingSigner(provider: string): string {
  if (provider.startsWith('k8s.io/')) return provider.slice('k8s.io/'.length)
  if (provider === 'istiod' || provider === 'custom' || provider === 'none') return ''
  throw new SettingError(`PILOT_CERT_PROVIDER: expected istiod, k8s.io/<signer>, custom or none, not "${provider}"`)
}
