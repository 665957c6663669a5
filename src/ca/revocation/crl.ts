// Certificate revocation lists: reading them and checking a chain against them.
import type { X509Certificate } from 'node:crypto'
import { isIssuedBy, pemBlocks } from '../../util/index.ts'
import { children, type DerElement, DerError, decode, tags } from '../client/der.ts'
import { signedStructure } from '../client/signature.ts'

const longestChain = 16

/** One list. Only its issuer's certificates are revoked by it, and only if the issuer's key signed it. */
export interface RevocationList {
  /** The issuer's name, DER. */
  readonly issuer: Buffer
  /** Serial numbers, upper-case hex without leading zeros. */
  readonly serials: ReadonlySet<string>
  readonly isSignedBy: (issuer: X509Certificate) => boolean
}

export class RevocationListError extends Error {
  readonly code = 'INVALID_CRL'
}

/** Reads PEM (any number of lists) or one DER list. An empty text is no list; anything else that is no list throws a RevocationListError. */
export function parseRevocationLists(bytes: Buffer): RevocationList[] {
  if (bytes.toString('latin1').trim() === '') return []
  try {
    if (bytes[0] === tags.sequence) return [parseList(bytes)]
    const lists = pemBlocks(bytes.toString('latin1')).filter(({ label }) => label === 'X509 CRL')
    if (lists.length === 0) throw new RevocationListError('invalid CRL: neither PEM (X509 CRL) nor DER')
    return lists.map(({ der }) => parseList(der))
  } catch (cause) {
    if (cause instanceof RevocationListError) throw cause
    throw new RevocationListError(`invalid CRL: ${cause instanceof Error ? cause.message : cause}`, { cause })
  }
}

/**
 * The first certificate of the chain (leaf first) that a list of its issuer names, or undefined. `known` are certificates that may
 * continue the chain where the peer's is not seen whole: roots, and our own intermediates. Where the issuer is not known at all, a
 * list under its name counts without its signature being checked. Certificates without a list are taken as not revoked, and the
 * lists' own expiry is not looked at.
 */
export function revokedIn(
  chain: readonly X509Certificate[],
  known: readonly X509Certificate[],
  lists: readonly RevocationList[],
): X509Certificate | undefined {
  if (lists.length === 0) return undefined
  const candidates = [...chain, ...known]
  const path = [...chain]
  for (let at = 0; at < path.length && path.length < longestChain; at += 1) {
    const certificate = path[at]
    if (certificate === undefined) break
    const issuers = candidates.filter((issuer) => isIssuedBy(certificate, issuer))
    const serial = canonicalSerial(certificate.serialNumber)
    const issuerName = nameDer(certificate, 'issuer')
    const isRevoked = lists.some(
      (list) =>
        list.serials.has(serial) &&
        list.issuer.equals(issuerName) &&
        (issuers.length === 0 || issuers.some((issuer) => list.isSignedBy(issuer))),
    )
    if (isRevoked) return certificate
    const [next] = issuers
    if (at === path.length - 1 && next !== undefined && !path.some((seen) => seen.raw.equals(next.raw))) path.push(next)
  }
  return undefined
}

/** True when every certificate of the chain that is not self-issued has a list of its issuer, signed by it. */
export function covers(
  lists: readonly RevocationList[],
  chain: readonly X509Certificate[],
  roots: readonly X509Certificate[],
): boolean {
  const issuers = [...chain, ...roots]
  return chain.every((certificate) =>
    issuers.some(
      (issuer) =>
        certificate.checkIssued(issuer) &&
        lists.some((list) => list.issuer.equals(nameDer(issuer, 'subject')) && list.isSignedBy(issuer)),
    ),
  )
}

function parseList(der: Buffer): RevocationList {
  const signed = signedStructure(der)
  const fields = children(signed.toBeSigned.content)
  if (fields[0]?.tag === tags.integer) fields.shift()
  const [, issuer, , afterThisUpdate, ...rest] = fields
  if (issuer?.tag !== tags.sequence) throw new DerError('certificate list without an issuer')
  const isTime = afterThisUpdate?.tag === tags.utcTime || afterThisUpdate?.tag === tags.generalizedTime
  const revoked = isTime ? rest[0] : afterThisUpdate
  const checked = new Map<string, boolean>()
  return {
    issuer: issuer.bytes,
    serials: new Set(revoked?.tag === tags.sequence ? children(revoked.content).map(serialOf) : []),
    isSignedBy(certificate) {
      const known = checked.get(certificate.fingerprint256)
      if (known !== undefined) return known
      const isSigned = signed.isSignedBy(certificate.publicKey)
      checked.set(certificate.fingerprint256, isSigned)
      return isSigned
    },
  }
}

function serialOf(entry: DerElement): string {
  const [serial] = children(entry.content)
  if (serial?.tag !== tags.integer) throw new DerError('revoked certificate without a serial number')
  return canonicalSerial(serial.content.toString('hex'))
}

function canonicalSerial(hex: string): string {
  return hex.toUpperCase().replace(/^0+(?=.)/, '')
}

function nameDer(certificate: X509Certificate, which: 'issuer' | 'subject'): Buffer {
  const [toBeSigned] = children(decode(certificate.raw).content)
  const fields = children(toBeSigned?.content ?? Buffer.alloc(0))
  // version [0], serial, signature, issuer, validity, subject; a certificate of version 1 has no version.
  const first = fields[0]?.tag === 0xa0 ? 1 : 0
  return fields[first + (which === 'issuer' ? 2 : 4)]?.bytes ?? Buffer.alloc(0)
}
