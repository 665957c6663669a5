// Renewal of a self-signed root before it expires: by a root with a new key, which everybody trusts for a while before it signs, or,
// when there is no time for that, with the same key, so that old and new certificates verify each other's leaves.
import { setTimeout as delay } from 'node:timers/promises'
import { certificateBlocks, mergeBundles } from '../../util/index.ts'
import type { SelfAuthority } from './authority.ts'
import { generatePrivateKey } from './generate-key.ts'
import { type SigningKey, signingKeyFromPem, signingKeyOf } from './keys.ts'
import { isSameMaterial } from './material.ts'
import { pluggedSecretName, type SecretContent, type SecretStore, secretKeys, successorKeys } from './secrets.ts'
import { materialOfSecret, selfSignedSecret } from './self-signed.ts'
import { x509 } from './x509.ts'

export interface RotationOptions {
  readonly store: SecretStore
  readonly secretName: string
  readonly authority: SelfAuthority
  /** Renew when at most this share of the lifetime is left; undefined only takes over what others write. */
  readonly graceRatio: number | undefined
  readonly ttlSeconds: number
  /** How long a root with a new key is distributed before it signs; undefined renews with the same key. */
  readonly overlapSeconds?: number
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
  /** The next root is in the bundle, and does not sign yet. */
  | { readonly kind: 'announced' }
  /** The root in force stays. */
  | { readonly kind: 'failed'; readonly error: unknown }

/** One check of the root, and its renewal when it is due, after those of the same authority that have begun. Never rejects. */
export function rotateRoot(options: RotationOptions): Promise<RotationOutcome> {
  return options.authority.inTurn(() => checkRoot(options))
}

async function checkRoot(options: RotationOptions): Promise<RotationOutcome> {
  const { store, secretName, authority, graceRatio, extraRoots = '', now = () => new Date() } = options
  try {
    const secret = await store.read(secretName)
    if (secret === undefined) return { kind: 'missing' }
    const step = graceRatio === undefined ? undefined : await nextStep(options, graceRatio, secret, now())
    if (step !== undefined) {
      const material = materialOfSecret(secretName, step.secret, extraRoots)
      await store.replace(secretName, step.secret)
      authority.replace(material)
      return { kind: step.kind }
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

/** Node.js lets longer timers end at once. */
const longestTimerMs = 2 ** 31 - 1

/** Checks the root from time to time until the signal ends it. An interval of 0 or less checks never. */
export async function runRootRotator(options: RotatorOptions, signal: AbortSignal): Promise<void> {
  const { authority, checkIntervalSeconds, hasJitter = true, onOutcome } = options
  if (checkIntervalSeconds <= 0) return
  try {
    const intervalMs = Math.min(checkIntervalSeconds * 1000, longestTimerMs)
    if (hasJitter) await delay(Math.random() * intervalMs, undefined, { signal, ref: false })
    for (;;) {
      const outcome = await authority.inTurn(() => {
        // Whoever is no longer to check may have been ended while it waited.
        signal.throwIfAborted()
        return checkRoot(options)
      })
      onOutcome?.(outcome)
      await delay(intervalMs, undefined, { signal, ref: false })
    }
  } catch (error) {
    if (!signal.aborted) throw error
  }
}

interface Step {
  readonly kind: 'rotated' | 'announced'
  readonly secret: SecretContent
}

/** What is due with the Secret; undefined when nothing is. */
async function nextStep(
  options: RotationOptions,
  graceRatio: number,
  secret: SecretContent,
  at: Date,
): Promise<Step | undefined> {
  const successor = parseCertificate(secret.data[successorKeys.certificate] ?? '')
  const overlapMs = (options.overlapSeconds ?? 0) * 1000
  const current = parseCertificate(secret.data[secretKeys.certificate] ?? '')
  if (successor !== undefined) {
    const ripeMs = successor.notBefore.getTime() + overlapMs
    if (at.getTime() >= ripeMs) return { kind: 'rotated', secret: promoted(secret, at) }
    if (current !== undefined && current.notAfter.getTime() > ripeMs) return undefined
  }
  if (current !== undefined && !isNearExpiry(current, at, graceRatio)) return undefined
  const leftMs = current === undefined ? 0 : current.notAfter.getTime() - at.getTime()
  if (options.overlapSeconds !== undefined && leftMs > overlapMs) {
    return { kind: 'announced', secret: await announced(options, secret, at) }
  }
  return { kind: 'rotated', secret: await renewed(options, secret, at) }
}

function isNearExpiry({ notBefore, notAfter }: x509.X509Certificate, at: Date, graceRatio: number): boolean {
  return notAfter.getTime() - at.getTime() <= (notAfter.getTime() - notBefore.getTime()) * graceRatio
}

/**
 * The same key under a new certificate. A certificate that cannot be read counts as near its end. A successor that would come too late
 * is given up: it has left the bundle.
 */
async function renewed(options: RotationOptions, old: SecretContent, at: Date): Promise<SecretContent> {
  const key = signingKeyFromPem(old.data[secretKeys.key] ?? '')
  return withoutSuccessor(changed(old, await freshRoot(options, old, key, at)))
}

async function announced(options: RotationOptions, old: SecretContent, at: Date): Promise<SecretContent> {
  const { kind } = signingKeyFromPem(old.data[secretKeys.key] ?? '')
  const fresh = await freshRoot(options, old, signingKeyOf(await generatePrivateKey(kind)), at)
  const next = fresh[secretKeys.certificate] ?? ''
  return changed(old, {
    [successorKeys.certificate]: next,
    [successorKeys.key]: fresh[secretKeys.key] ?? '',
    [secretKeys.roots]: mergeBundles(old.data[secretKeys.roots] || (old.data[secretKeys.certificate] ?? ''), next),
  })
}

/** The successor signs; roots that have not ended stay in the bundle. */
function promoted(old: SecretContent, at: Date): SecretContent {
  const { [successorKeys.certificate]: certificate = '', [successorKeys.key]: key = '' } = old.data
  const stillGood = certificateBlocks(old.data[secretKeys.roots] ?? '').filter(
    (pem) => new Date(parseCertificate(pem)?.notAfter ?? 0) > at,
  )
  return withoutSuccessor(
    changed(old, {
      [secretKeys.certificate]: certificate,
      [secretKeys.key]: key,
      [secretKeys.roots]: mergeBundles(certificate, ...stillGood),
    }),
  )
}

function withoutSuccessor({ data, ...rest }: SecretContent): SecretContent {
  const { [successorKeys.certificate]: _certificate, [successorKeys.key]: _key, ...kept } = data
  return { ...rest, data: kept }
}

async function freshRoot(
  { secretName, organization, ttlSeconds, extraRoots = '' }: RotationOptions,
  old: SecretContent,
  key: SigningKey,
  at: Date,
): Promise<Readonly<Record<string, string>>> {
  const before = parseCertificate(old.data[secretKeys.certificate] ?? '')
  const organizations = before?.subjectName.getField('O') ?? []
  const { data } = await selfSignedSecret(
    key,
    organizations.length > 0 ? organizations : [organization],
    at,
    ttlSeconds,
    extraRoots,
    secretName === pluggedSecretName,
  )
  return data
}

function changed(old: SecretContent, data: Readonly<Record<string, string>>): SecretContent {
  return {
    type: old.type,
    data: { ...old.data, ...data },
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
