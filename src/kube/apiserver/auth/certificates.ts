// Makes and signs X.509 certificates of the API server's own authority.
import 'reflect-metadata'
import { createPublicKey, randomBytes, webcrypto } from 'node:crypto'
import * as x509 from '@peculiar/x509'

export interface KeyPair {
  /** PEM, PKCS #8. */
  readonly key: string
  readonly certificate: string
}

export interface SubjectNames {
  readonly dns?: readonly string[]
  readonly ips?: readonly string[]
}

export interface LeafOptions {
  readonly commonName: string
  readonly organizations?: readonly string[]
  readonly names?: SubjectNames
  readonly usage: 'server' | 'client'
  readonly days?: number
}

const ecdsa = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const
const purposes = { server: x509.ExtendedKeyUsage.serverAuth, client: x509.ExtendedKeyUsage.clientAuth }
const day = 24 * 60 * 60 * 1000
/** Clocks of clients may be a little behind. */
const backdatedMs = 5 * 60 * 1000

export async function createAuthority(commonName: string, days = 3650): Promise<KeyPair> {
  const keys = await webcrypto.subtle.generateKey(ecdsa, true, ['sign', 'verify'])
  const certificate = await x509.X509CertificateGenerator.createSelfSigned(
    {
      serialNumber: newSerial(),
      name: distinguishedName(commonName),
      notBefore: new Date(Date.now() - backdatedMs),
      notAfter: new Date(Date.now() + days * day),
      keys,
      signingAlgorithm: ecdsa,
      extensions: [
        new x509.BasicConstraintsExtension(true, undefined, true),
        new x509.KeyUsagesExtension(
          x509.KeyUsageFlags.digitalSignature | x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign,
          true,
        ),
        await x509.SubjectKeyIdentifierExtension.create(keys.publicKey, false, webcrypto),
      ],
    },
    webcrypto,
  )
  return { key: await pemOfKey(keys.privateKey), certificate: pem(certificate) }
}

export async function createLeaf(authority: KeyPair, options: LeafOptions): Promise<KeyPair> {
  const keys = await webcrypto.subtle.generateKey(ecdsa, true, ['sign', 'verify'])
  const certificate = await sign(authority, {
    publicKey: keys.publicKey,
    subject: distinguishedName(options.commonName, options.organizations),
    names: options.names ?? {},
    purposes: [purposes[options.usage]],
    notAfter: new Date(Date.now() + (options.days ?? 365) * day),
  })
  return { key: await pemOfKey(keys.privateKey), certificate }
}

export interface SignRequest {
  readonly publicKey: webcrypto.CryptoKey | x509.PublicKey
  readonly subject: x509.JsonName
  readonly names: SubjectNames
  readonly purposes: readonly string[]
  readonly notAfter: Date
}

/** Signs a leaf certificate; returns it in PEM. */
export async function sign(authority: KeyPair, request: SignRequest): Promise<string> {
  const issuer = new x509.X509Certificate(authority.certificate)
  const { dns = [], ips = [] } = request.names
  const names: x509.JsonGeneralNames = [
    ...dns.map((value) => ({ type: 'dns' as const, value })),
    ...ips.map((value) => ({ type: 'ip' as const, value })),
  ]
  const certificate = await x509.X509CertificateGenerator.create(
    {
      serialNumber: newSerial(),
      subject: request.subject,
      issuer: issuer.subjectName.toJSON(),
      notBefore: new Date(Date.now() - backdatedMs),
      notAfter: new Date(Math.min(request.notAfter.getTime(), issuer.notAfter.getTime())),
      publicKey: request.publicKey,
      signingKey: await importKey(authority.key),
      signingAlgorithm: ecdsa,
      extensions: [
        new x509.BasicConstraintsExtension(false, undefined, true),
        new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature | x509.KeyUsageFlags.keyEncipherment, true),
        new x509.ExtendedKeyUsageExtension([...request.purposes]),
        await x509.AuthorityKeyIdentifierExtension.create(await issuer.publicKey.export(webcrypto), false, webcrypto),
        ...(names.length > 0 ? [new x509.SubjectAlternativeNameExtension(names)] : []),
      ],
    },
    webcrypto,
  )
  return pem(certificate)
}

/** Whether a certificate is signed by the authority, is valid for `days` more days, and carries all names. */
export function isUsable(certificate: string, authority: KeyPair, names: SubjectNames, days = 30): boolean {
  const parsed = new x509.X509Certificate(certificate)
  const issuer = new x509.X509Certificate(authority.certificate)
  const alternatives = parsed.getExtension(x509.SubjectAlternativeNameExtension)?.names.items ?? []
  const carried = new Set(alternatives.map((name) => name.value))
  return (
    parsed.issuer === issuer.subject &&
    parsed.notAfter.getTime() > Date.now() + days * day &&
    [...(names.dns ?? []), ...(names.ips ?? [])].every((name) => carried.has(name))
  )
}

export function distinguishedName(commonName: string, organizations: readonly string[] = []): x509.JsonName {
  return [...organizations.map((name) => ({ O: [name] })), { CN: [commonName] }]
}

function pem(certificate: x509.X509Certificate): string {
  return `${certificate.toString('pem')}\n`
}

/** A positive number of 127 random bits. */
function newSerial(): string {
  const bytes = randomBytes(16)
  bytes[0] = ((bytes[0] ?? 0) & 0x7f) | 0x40
  return bytes.toString('hex')
}

async function pemOfKey(key: webcrypto.CryptoKey): Promise<string> {
  const bytes = await webcrypto.subtle.exportKey('pkcs8', key)
  return `${x509.PemConverter.encode(bytes, 'PRIVATE KEY')}\n`
}

function importKey(key: string): Promise<webcrypto.CryptoKey> {
  const [bytes] = x509.PemConverter.decode(key)
  if (bytes === undefined) throw new TypeError('the private key is not PEM')
  return webcrypto.subtle.importKey('pkcs8', bytes, ecdsa, false, ['sign'])
}

/** The public half of a private key, in PEM. */
export function publicKeyOf(privateKey: string): string {
  return createPublicKey(privateKey).export({ type: 'spki', format: 'pem' }).toString()
}
