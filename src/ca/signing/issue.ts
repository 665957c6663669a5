// Certificates as the mesh issues them: leaves with exactly the given names, and self-signed roots.
import { createPublicKey, type KeyObject, randomBytes } from 'node:crypto'
import { encode, tags } from '../client/der.ts'
import { SigningError } from './errors.ts'
import { ipBytes } from './ip-bytes.ts'
import type { SigningKey } from './keys.ts'
import { x509 } from './x509.ts'

export interface Signer {
  readonly certificate: x509.X509Certificate
  readonly key: SigningKey
}

export interface LeafRequest {
  /** SubjectPublicKeyInfo, DER. */
  readonly publicKey: Uint8Array
  /** URIs, DNS names and IP addresses, encoded in this order. */
  readonly names: readonly string[]
  readonly commonName?: string
  readonly notBefore: Date
  readonly notAfter: Date
}

export interface RootRequest {
  readonly key: SigningKey
  readonly organizations: readonly string[]
  readonly notBefore: Date
  readonly notAfter: Date
}

const { KeyUsageFlags, ExtendedKeyUsage } = x509
const subjectAltName = '2.5.29.17'
/** Context-specific tags of a GeneralName (RFC 5280, section 4.2.1.6). */
const nameTags = { dns: 0x82, uri: 0x86, ip: 0x87 } as const

/** Signs a leaf. Throws a SigningError for names that no certificate can carry. */
export async function issueLeaf(signer: Signer, request: LeafRequest): Promise<x509.X509Certificate> {
  const { names, commonName } = request
  if (names.length === 0) throw new SigningError('CERT_GEN_ERROR', 'no identity to certify')
  const signerKeyId = signer.certificate.getExtension(x509.SubjectKeyIdentifierExtension)
  return x509.X509CertificateGenerator.create({
    serialNumber: randomSerial(),
    issuer: signer.certificate.subjectName,
    subject: new x509.Name(commonName === undefined ? [] : [{ CN: [{ utf8String: commonName }] }]),
    notBefore: wholeSeconds(request.notBefore),
    notAfter: wholeSeconds(request.notAfter),
    publicKey: new x509.PublicKey(Uint8Array.from(request.publicKey)),
    signingKey: signer.key.signingKey,
    signingAlgorithm: signer.key.algorithm,
    extensions: [
      new x509.KeyUsagesExtension(KeyUsageFlags.digitalSignature | KeyUsageFlags.keyEncipherment, true),
      new x509.ExtendedKeyUsageExtension([ExtendedKeyUsage.serverAuth, ExtendedKeyUsage.clientAuth]),
      new x509.BasicConstraintsExtension(false, undefined, true),
      ...(signerKeyId === null ? [] : [new x509.AuthorityKeyIdentifierExtension(signerKeyId.keyId)]),
      new x509.Extension(subjectAltName, true, encode(tags.sequence, ...names.map(generalName))),
    ],
  })
}

export async function issueRoot(request: RootRequest): Promise<x509.X509Certificate> {
  const { key, organizations } = request
  const publicKey = new x509.PublicKey(Uint8Array.from(publicKeyDer(key.privateKey)))
  const name = new x509.Name(organizations.map((organization) => ({ O: [{ utf8String: organization }] })))
  return x509.X509CertificateGenerator.create({
    serialNumber: randomSerial(),
    issuer: name,
    subject: name,
    notBefore: wholeSeconds(request.notBefore),
    notAfter: wholeSeconds(request.notAfter),
    publicKey,
    signingKey: key.signingKey,
    signingAlgorithm: key.algorithm,
    extensions: [
      new x509.KeyUsagesExtension(KeyUsageFlags.keyCertSign, true),
      new x509.BasicConstraintsExtension(true, undefined, true),
      await x509.SubjectKeyIdentifierExtension.create(publicKey),
    ],
  })
}

/** SubjectPublicKeyInfo of a private or public key. */
export function publicKeyDer(key: KeyObject): Buffer {
  const publicKey = key.type === 'private' ? createPublicKey(key) : key
  return publicKey.export({ type: 'spki', format: 'der' })
}

/** Certificates as newline-terminated PEM. */
export function certificatePem(certificate: x509.X509Certificate): string {
  return `${certificate.toString('pem').trimEnd()}\n`
}

function generalName(name: string): Buffer {
  // A comma would make several names of one wherever names are printed as a list.
  if (!/^[\x21-\x7e]+$/.test(name) || name.includes(',')) {
    throw new SigningError('CERT_GEN_ERROR', `identity ${JSON.stringify(name)} cannot be put in a certificate`)
  }
  const address = ipBytes(name)
  if (address !== undefined) return encode(nameTags.ip, address)
  return encode(name.startsWith('spiffe://') ? nameTags.uri : nameTags.dns, Buffer.from(name, 'latin1'))
}

function randomSerial(): string {
  const bytes = randomBytes(16)
  // Positive, and with a first byte that is not zero.
  bytes[0] = ((bytes[0] ?? 0) & 0x7f) | 0x01
  return bytes.toString('hex')
}

function wholeSeconds(date: Date): Date {
  return new Date(Math.floor(date.getTime() / 1000) * 1000)
}
