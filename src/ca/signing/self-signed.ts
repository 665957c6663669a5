// The CA's own root: read from its Secret, or made and stored there by the first replica that finds none.
import { mergeBundles } from '../../util/index.ts'
import { MaterialError } from './errors.ts'
import { generatePrivateKey, privateKeyPem } from './generate-key.ts'
import { certificatePem, issueRoot } from './issue.ts'
import { type SigningKey, signingKeyOf } from './keys.ts'
import { type SigningMaterial, signingMaterial } from './material.ts'
import {
  generatedMark,
  pluggedSecretName,
  type SecretContent,
  type SecretStore,
  secretKeys,
  selfSignedSecretName,
  selfSignedSecretType,
} from './secrets.ts'

export interface SelfSignedOptions {
  /** The organisation of the root: the trust domain. */
  readonly organization: string
  readonly ttlSeconds: number
  readonly rsaKeyBits?: number
  /** Keep new material in the Secret `cacerts`. */
  readonly useCacerts?: boolean
  /** Further roots for the bundle, PEM. */
  readonly extraRoots?: string
  readonly now?: () => Date
}

export interface SelfSigned {
  readonly material: SigningMaterial
  readonly secretName: string
  /** False where the Secret's content is the user's own: it is never rotated. */
  readonly isManaged: boolean
}

/**
 * The material of the Secret, or new material when there is none. When several replicas start at once one of them creates the
 * Secret and the others read it. Rejects with a MaterialError: INCOMPLETE for a Secret without material, which whoever writes it may
 * still complete.
 */
export async function loadOrCreateSelfSigned(store: SecretStore, options: SelfSignedOptions): Promise<SelfSigned> {
  const { useCacerts = false, extraRoots = '' } = options
  const found = await findSelfSigned(store, useCacerts, extraRoots)
  if (found !== undefined) return found
  const secretName = useCacerts ? pluggedSecretName : selfSignedSecretName
  const secret = await newSecret(options)
  if (await store.create(secretName, secret)) return read(secretName, secret, extraRoots)
  const winner = await findSelfSigned(store, useCacerts, extraRoots)
  if (winner !== undefined) return winner
  throw new MaterialError('INCOMPLETE', `Secret ${secretName} could be neither created nor read`)
}

/** The material of the first Secret there is. */
async function findSelfSigned(
  store: SecretStore,
  useCacerts: boolean,
  extraRoots: string,
): Promise<SelfSigned | undefined> {
  for (const name of useCacerts ? [selfSignedSecretName, pluggedSecretName] : [selfSignedSecretName]) {
    const secret = await store.read(name)
    if (secret !== undefined) return read(name, secret, extraRoots)
  }
  return undefined
}

function read(secretName: string, secret: SecretContent, extraRoots: string): SelfSigned {
  return {
    material: materialOfSecret(secretName, secret, extraRoots),
    secretName,
    isManaged: secretName === selfSignedSecretName || generatedMark in secret.data,
  }
}

/** Throws a MaterialError. */
export function materialOfSecret(secretName: string, secret: SecretContent, extraRoots: string): SigningMaterial {
  const { [secretKeys.certificate]: certificate = '', [secretKeys.key]: key = '' } = secret.data
  if (certificate === '' || key === '') {
    throw new MaterialError(
      'INCOMPLETE',
      `Secret ${secretName} lacks ${certificate === '' ? secretKeys.certificate : secretKeys.key}`,
    )
  }
  const roots = mergeBundles(secret.data[secretKeys.roots] || certificate, extraRoots)
  return signingMaterial({ certificate, key, roots, chain: secret.data[secretKeys.chain] ?? '' })
}

async function newSecret(options: SelfSignedOptions): Promise<SecretContent> {
  const { organization, ttlSeconds, rsaKeyBits = 2048, useCacerts = false, now = () => new Date() } = options
  const key = signingKeyOf(await generatePrivateKey({ kind: 'rsa', bits: rsaKeyBits }))
  return selfSignedSecret(key, [organization], now(), ttlSeconds, options.extraRoots ?? '', useCacerts)
}

/** A root valid from now on, as the content of its Secret. */
export async function selfSignedSecret(
  key: SigningKey,
  organizations: readonly string[],
  notBefore: Date,
  ttlSeconds: number,
  extraRoots: string,
  isCacerts: boolean,
): Promise<SecretContent> {
  const notAfter = new Date(notBefore.getTime() + ttlSeconds * 1000)
  const certificate = certificatePem(await issueRoot({ key, organizations, notBefore, notAfter }))
  return {
    type: isCacerts ? 'Opaque' : selfSignedSecretType,
    data: {
      [secretKeys.certificate]: certificate,
      [secretKeys.key]: privateKeyPem(key.privateKey),
      [secretKeys.roots]: mergeBundles(certificate, extraRoots),
      [secretKeys.chain]: '',
      'key.pem': '',
      ...(isCacerts ? { [generatedMark]: '' } : {}),
    },
  }
}
