// Private keys of a CA: reading them from PEM, making new ones, and the algorithm each kind signs with.
import { createPrivateKey, type KeyObject, type webcrypto } from 'node:crypto'
import { pemBlocks } from '../../util/index.ts'
import { MaterialError } from './errors.ts'

type CryptoKey = webcrypto.CryptoKey

export type KeyKind =
  | { readonly kind: 'rsa'; readonly bits: number }
  | { readonly kind: 'ec'; readonly curve: 'P-256' | 'P-384' | 'P-521' }
  | { readonly kind: 'ed25519' }

/** A private key with what WebCrypto needs to sign with it. */
export interface SigningKey {
  readonly kind: KeyKind
  readonly privateKey: KeyObject
  readonly signingKey: CryptoKey
  readonly algorithm: { readonly name: string; readonly hash?: string }
}

const curves: Readonly<Record<string, 'P-256' | 'P-384' | 'P-521'>> = {
  prime256v1: 'P-256',
  secp384r1: 'P-384',
  secp521r1: 'P-521',
}
const curveHashes = { 'P-256': 'SHA-256', 'P-384': 'SHA-384', 'P-521': 'SHA-512' } as const

/** Reads `EC PRIVATE KEY`, `RSA PRIVATE KEY` or `PRIVATE KEY`. Throws a MaterialError. */
export function signingKeyFromPem(pem: string): SigningKey {
  const block = pemBlocks(pem).find(({ label }) => /^((EC|RSA) )?PRIVATE KEY$/.test(label))
  if (block === undefined) {
    const what = /ENCRYPTED/.test(pem) ? 'is encrypted: expected one without a passphrase' : 'is no PEM private key'
    throw new MaterialError('INVALID', `the signing key ${what}`)
  }
  try {
    return signingKeyOf(createPrivateKey(block.pem))
  } catch (cause) {
    if (cause instanceof MaterialError) throw cause
    throw new MaterialError('INVALID', 'the signing key cannot be read', { cause })
  }
}

export function signingKeyOf(privateKey: KeyObject): SigningKey {
  const kind = kindOf(privateKey)
  switch (kind.kind) {
    case 'rsa': {
      const algorithm = { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' }
      return { kind, privateKey, algorithm, signingKey: privateKey.toCryptoKey(algorithm, false, ['sign']) }
    }
    case 'ec': {
      const signingKey = privateKey.toCryptoKey({ name: 'ECDSA', namedCurve: kind.curve }, false, ['sign'])
      return { kind, privateKey, algorithm: { name: 'ECDSA', hash: curveHashes[kind.curve] }, signingKey }
    }
    case 'ed25519': {
      const algorithm = { name: 'Ed25519' }
      return { kind, privateKey, algorithm, signingKey: privateKey.toCryptoKey(algorithm, false, ['sign']) }
    }
  }
}

/** The kind of a public or private key. Throws a MaterialError for kinds that sign no certificates here. */
export function kindOf(key: KeyObject): KeyKind {
  const { asymmetricKeyType: type, asymmetricKeyDetails: details } = key
  if (type === 'rsa') return { kind: 'rsa', bits: details?.modulusLength ?? 0 }
  if (type === 'ed25519') return { kind: 'ed25519' }
  const curve = type === 'ec' ? curves[details?.namedCurve ?? ''] : undefined
  if (curve !== undefined) return { kind: 'ec', curve }
  throw new MaterialError('INVALID', `keys of kind ${type} ${details?.namedCurve ?? ''} are not supported`)
}
