// Renewal of a self-signed root before it expires, with the same key, so that old and new certificates verify each other's leaves.
import { setTimeout as delay } from 'node:timers/promises'
import type { SelfAuthority } from './authority.ts'
import { signingKeyFromPem } from './keys.ts'
import { isSameMaterial } from './material.ts'
import { pluggedSecretName, type SecretContent, type SecretStore, secretKeys } from './secrets.ts'
import { materialOfSecret, selfSignedSecret } from './self-signed.ts'
import { x509 } from './x509.ts'

export interface RotationOptions {
  readonly store: SecretStore
  readonly secretName: string
  readonly authority: SelfAuthority
  /** Renew when at most this share of the lifetime is left; 0 only takes over what others write. */
  readonly graceRatio: number
  readonly ttlSeconds: number
  /** The organisation of a new root when the old one cannot be read. */
  readonly organization: string
  readonly extraRoots?: string
  readonly now?: () => Date
}

export type RotationOutcome =
  | { readonly kind: 'unchanged' }
  /** There is no Secret: it is left to whoever removed it. */
  | { readonly kind: 'missing' }
  /** Another replica has changed the Secret; its content is in force now. */
  | { readonly kind: 'reloaded' }
  | { readonly kind: 'rotated' }
  /** The root in force stays. */
  | { readonly kind: 'failed'; readonly error: unknown }

/** One check of the root, and its renewal when it is due. Never rejects. */
export async function rotateRoot(options: RotationOptions): Promise<RotationOutcome> {
  const { store, secretName, authority, graceRatio, extraRoots = '', now = () => new Date() } = options
  try {
    const secret = await store.read(secretName)
    if (secret === undefined) return { kind: 'missing' }
    if (graceRatio > 0 && isNearExpiry(secret.data[secretKeys.certificate] ?? '', now(), graceRatio)) {
      const renewed = await renewedSecret(options, secret)
      const material = materialOfSecret(secretName, renewed, extraRoots)
      await store.replace(secretName, renewed)
      authority.replace(material)
      return { kind: 'rotated' }
    }
    const material = materialOfSecret(secretName, secret, extraRoots)
    if (isSameMaterial(material, authority.material)) return { kind: 'unchanged' }
    authority.replace(material)
    return { kind: 'reloaded' }
  } catch (error) {
    return { kind: 'failed', error }
  }
}

export interface RotatorOptions extends RotationOptions {
  readonly checkIntervalSeconds: number
  /** Spread the first check over the interval, so that replicas do not check at once. */
  readonly hasJitter?: boolean
  readonly onOutcome?: (outcome: RotationOutcome) => void
}

/** Checks the root from time to time until the signal ends it. An interval of 0 or less checks never. */
export async function runRootRotator(options: RotatorOptions, signal: AbortSignal): Promise<void> {
  const { checkIntervalSeconds, hasJitter = true, onOutcome } = options
  if (checkIntervalSeconds <= 0) return
  try {
    if (hasJitter) await delay(Math.random() * checkIntervalSeconds * 1000, undefined, { signal, ref: false })
    for (;;) {
      onOutcome?.(await rotateRoot(options))
      await delay(checkIntervalSeconds * 1000, undefined, { signal, ref: false })
    }
  } catch (error) {
    if (!signal.aborted) throw error
  }
}

/** A certificate that cannot be read counts as near its end. */
function isNearExpiry(certificatePemText: string, at: Date, graceRatio: number): boolean {
  const certificate = parseCertificate(certificatePemText)
  if (certificate === undefined) return true
  const { notBefore, notAfter } = certificate
  const lifetime = notAfter.getTime() - notBefore.getTime()
  return notAfter.getTime() - at.getTime() <= lifetime * graceRatio
}

async function renewedSecret(options: RotationOptions, old: SecretContent): Promise<SecretContent> {
  const { secretName, organization, ttlSeconds, extraRoots = '', now = () => new Date() } = options
  const key = signingKeyFromPem(old.data[secretKeys.key] ?? '')
  const oldCertificate = parseCertificate(old.data[secretKeys.certificate] ?? '')
  const organizations = oldCertificate?.subjectName.getField('O') ?? []
  const fresh = await selfSignedSecret(
    key,
    organizations.length > 0 ? organizations : [organization],
    now(),
    ttlSeconds,
    extraRoots,
    secretName === pluggedSecretName,
  )
  return {
    type: old.type,
    data: { ...old.data, ...fresh.data },
    ...(old.version === undefined ? {} : { version: old.version }),
  }
}

function parseCertificate(pem: string): x509.X509Certificate | undefined {
  try {
    return new x509.X509Certificate(pem)
  } catch {
    return undefined
  }
}
