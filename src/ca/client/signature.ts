// Signatures over DER structures (a certificate request, a revocation list), checked without leniency: one encoding, algorithms that are sound.
import { constants, type KeyObject, verify } from 'node:crypto'
import { children, type DerElement, DerError, decode, tags } from './der.ts'

/** `SEQUENCE { toBeSigned, algorithm, signature }`, taken apart. */
export interface SignedStructure {
  readonly toBeSigned: DerElement
  /** True when the key has signed it; false also for a key of another kind than the signature. */
  readonly isSignedBy: (key: KeyObject) => boolean
}

interface Algorithm {
  readonly keyType: 'rsa' | 'ec' | 'ed25519'
  readonly digest: string | null
  readonly isPss?: boolean
}

/** By object identifier; SHA-1 and MD5 are left out on purpose. */
const algorithms: Readonly<Record<string, Algorithm>> = {
  '2a864886f70d01010b': { keyType: 'rsa', digest: 'sha256' },
  '2a864886f70d01010c': { keyType: 'rsa', digest: 'sha384' },
  '2a864886f70d01010d': { keyType: 'rsa', digest: 'sha512' },
  '2a8648ce3d040302': { keyType: 'ec', digest: 'sha256' },
  '2a8648ce3d040303': { keyType: 'ec', digest: 'sha384' },
  '2a8648ce3d040304': { keyType: 'ec', digest: 'sha512' },
  '2b6570': { keyType: 'ed25519', digest: null },
}
const pss = '2a864886f70d01010a'
const pssDigests: Readonly<Record<string, string>> = {
  '608648016503040201': 'sha256',
  '608648016503040202': 'sha384',
  '608648016503040203': 'sha512',
}

/** Throws a DerError for another shape, for bytes that follow, and for an algorithm that is not supported. */
export function signedStructure(der: Buffer): SignedStructure {
  const outer = decode(der)
  if (outer.bytes.length !== der.length) throw new DerError('there is more after the end')
  const [toBeSigned, algorithm, signature, ...more] = outer.tag === tags.sequence ? children(outer.content) : []
  if (toBeSigned === undefined || algorithm?.tag !== tags.sequence || signature === undefined || more.length > 0) {
    throw new DerError('not a signed structure')
  }
  if (signature.tag !== tags.bitString || signature.content[0] !== 0) throw new DerError('not a signature')
  const { keyType, digest, isPss } = algorithmOf(algorithm)
  return {
    toBeSigned,
    isSignedBy(key) {
      if (key.asymmetricKeyType !== keyType) return false
      const padding = isPss
        ? { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: constants.RSA_PSS_SALTLEN_AUTO }
        : {}
      try {
        return verify(digest, toBeSigned.bytes, { key, ...padding }, signature.content.subarray(1))
      } catch {
        return false
      }
    },
  }
}

function algorithmOf({ content }: DerElement): Algorithm {
  const [oid, parameters, ...more] = children(content)
  const name = oid?.tag === tags.oid ? oid.content.toString('hex') : ''
  if (name === pss && parameters !== undefined && more.length === 0)
    return { keyType: 'rsa', digest: pssDigest(parameters), isPss: true }
  const known = algorithms[name]
  const isPlain = more.length === 0 && (parameters === undefined || parameters.bytes.equals(nothing))
  if (known !== undefined && isPlain) return known
  throw new DerError('signed with an algorithm that is not supported')
}

const nothing = Buffer.from([tags.null, 0])

/** Of `RSASSA-PSS-params`: the hash, its first field (RFC 4055, section 3.1). */
function pssDigest(parameters: DerElement): string {
  const [hash] = children(parameters.content)
  const [identifier] = hash?.tag === 0xa0 ? children(hash.content) : []
  const [oid] = identifier === undefined ? [] : children(identifier.content)
  const digest = pssDigests[oid?.content.toString('hex') ?? '']
  if (digest === undefined) throw new DerError('signed with an algorithm that is not supported')
  return digest
}
