// New private keys.
import { generateKeyPair, type KeyObject } from 'node:crypto'
import { promisify } from 'node:util'
import type { KeyKind } from './keys.ts'

const generate = promisify(generateKeyPair)
const curveNames = { 'P-256': 'prime256v1', 'P-384': 'secp384r1', 'P-521': 'secp521r1' } as const

/** A new private key, made off the event loop. */
export async function generatePrivateKey(kind: KeyKind): Promise<KeyObject> {
  switch (kind.kind) {
    case 'rsa':
      return (await generate('rsa', { modulusLength: kind.bits })).privateKey
    case 'ec':
      return (await generate('ec', { namedCurve: curveNames[kind.curve] })).privateKey
    case 'ed25519':
      return (await generate('ed25519', {})).privateKey
  }
}

/** PKCS#8 PEM. */
export function privateKeyPem(key: KeyObject): string {
  return key.export({ type: 'pkcs8', format: 'pem' }).toString()
}
