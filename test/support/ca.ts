// Keys, requests and chains for tests of certificates.
import { toPem } from '../../src/util/index.ts'
import 'reflect-metadata'
import { webcrypto } from 'node:crypto'
import * as x509 from '@peculiar/x509'

x509.cryptoProvider.set(webcrypto)

const rsa = (modulusLength: number) =>
  ({
    name: 'RSASSA-PKCS1-v1_5',
    hash: 'SHA-256',
    modulusLength,
    publicExponent: new Uint8Array([1, 0, 1]),
  }) as const

const algorithms = {
  rsa1024: rsa(1024),
  rsa2048: rsa(2048),
  rsa3072: rsa(3072),
  rsa4096: rsa(4096),
  ecP256: { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' },
  ecP384: { name: 'ECDSA', namedCurve: 'P-384', hash: 'SHA-384' },
  ecP521: { name: 'ECDSA', namedCurve: 'P-521', hash: 'SHA-512' },
  ed25519: { name: 'Ed25519' },
} as const

export type TestKey = keyof typeof algorithms

export async function makeKeys(kind: TestKey): Promise<webcrypto.CryptoKeyPair> {
  return (await webcrypto.subtle.generateKey(algorithms[kind], true, ['sign', 'verify'])) as webcrypto.CryptoKeyPair
}

export async function keyPem(keys: webcrypto.CryptoKeyPair): Promise<string> {
  const der = await webcrypto.subtle.exportKey('pkcs8', keys.privateKey)
  return `-----BEGIN PRIVATE KEY-----\n${Buffer.from(der).toString('base64')}\n-----END PRIVATE KEY-----\n`
}

export interface TestRequest {
  readonly key: TestKey
  readonly uris?: readonly string[]
  readonly dns?: readonly string[]
  readonly ips?: readonly string[]
  readonly emails?: readonly string[]
  readonly subject?: Readonly<Record<string, string | readonly string[]>>
  readonly isBroken?: boolean
  readonly extraExtensions?: readonly x509.Extension[]
}

/** A certificate request, or with `isBroken` one signed by another key. */
export async function makeRequest(request: TestRequest): Promise<string> {
  const keys = await makeKeys(request.key)
  const names: x509.JsonGeneralName[] = [
    ...(request.uris ?? []).map((value) => ({ type: 'url' as const, value })),
    ...(request.dns ?? []).map((value) => ({ type: 'dns' as const, value })),
    ...(request.ips ?? []).map((value) => ({ type: 'ip' as const, value })),
    ...(request.emails ?? []).map((value) => ({ type: 'email' as const, value })),
  ]
  const csr = await x509.Pkcs10CertificateRequestGenerator.create({
    name: new x509.Name(
      Object.entries(request.subject ?? {}).flatMap(([type, values]) =>
        [values].flat().map((value) => ({ [type]: [{ utf8String: value }] })),
      ),
    ),
    keys: request.isBroken ? { publicKey: keys.publicKey, privateKey: (await makeKeys(request.key)).privateKey } : keys,
    signingAlgorithm: algorithms[request.key],
    extensions: [
      ...(names.length > 0 ? [new x509.SubjectAlternativeNameExtension(names)] : []),
      ...(request.extraExtensions ?? []),
    ],
  })
  return `${csr.toString('pem')}\n`
}

export interface TestCa {
  readonly pem: string
  readonly key: string
  readonly certificate: x509.X509Certificate
  readonly keys: webcrypto.CryptoKeyPair
  readonly kind: TestKey
}

/** What signs certificates; of `kind` P-256 when it does not say. */
export interface CertificateIssuer {
  readonly certificate: Pick<x509.X509Certificate, 'subjectName'>
  readonly keys: Pick<webcrypto.CryptoKeyPair, 'privateKey'>
  readonly kind?: TestKey
}

export interface TestCaOptions {
  readonly name: string
  readonly kind?: TestKey
  readonly issuer?: CertificateIssuer
  readonly notBefore?: Date
  readonly notAfter?: Date
  readonly isCa?: boolean
  /** How many authorities may be below it. */
  readonly pathLength?: number
  /** Of another one, to be renewed; by default new ones. */
  readonly keys?: webcrypto.CryptoKeyPair
}

/** A CA certificate, self-signed without an issuer. */
export async function makeCa(options: TestCaOptions): Promise<TestCa> {
  const { name, kind = 'ecP256', issuer, isCa = true } = options
  const keys = options.keys ?? (await makeKeys(kind))
  const subject = new x509.Name([{ O: [{ utf8String: name }] }])
  const certificate = await x509.X509CertificateGenerator.create({
    subject,
    issuer: issuer?.certificate.subjectName ?? subject,
    publicKey: keys.publicKey,
    signingKey: issuer?.keys.privateKey ?? keys.privateKey,
    signingAlgorithm: algorithms[issuer === undefined ? kind : (issuer.kind ?? 'ecP256')],
    notBefore: options.notBefore ?? new Date(Date.now() - 60_000),
    notAfter: options.notAfter ?? new Date(Date.now() + 24 * 3_600_000),
    extensions: [
      new x509.BasicConstraintsExtension(isCa, options.pathLength, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  })
  return { pem: `${certificate.toString('pem')}\n`, key: await keyPem(keys), certificate, keys, kind }
}

export interface LeafNames {
  readonly uris: readonly string[]
  readonly dns?: readonly string[]
}

/** A leaf with these names (a list: of URIs), signed by the CA, with its key. `dates`: other ones than an hour from now. */
export async function makeLeaf(
  ca: TestCa,
  names: LeafNames | readonly string[],
  dates: { readonly notBefore?: Date; readonly notAfter?: Date } = {},
): Promise<{ readonly pem: string; readonly key: string }> {
  const keys = await makeKeys('ecP256')
  return { pem: await signLeaf(ca, names, keys.publicKey, dates), key: await keyPem(keys) }
}

/** What a signer makes of a request for URI names. */
export async function certify(ca: TestCa, csrPem: string): Promise<string> {
  const request = new x509.Pkcs10CertificateRequest(csrPem)
  const uris = request.extensions.flatMap((extension) =>
    extension instanceof x509.SubjectAlternativeNameExtension ? extension.names.items.map(({ value }) => value) : [],
  )
  return signLeaf(ca, uris, await request.publicKey.export())
}

/** What a signer makes of a request who certifies these names, and this subject, whatever was asked for. */
export async function certifyAs(
  ca: TestCa,
  csrPem: string,
  names: readonly x509.JsonGeneralName[],
  subject = '',
): Promise<string> {
  const { publicKey } = new x509.Pkcs10CertificateRequest(csrPem)
  const named = names.length === 0 ? [] : [new x509.SubjectAlternativeNameExtension([...names])]
  return signed(ca, { subject, publicKey, extensions: named })
}

/** A leaf for a key, PEM. */
export async function signLeaf(
  ca: TestCa,
  names: LeafNames | readonly string[],
  publicKey: webcrypto.CryptoKey,
  dates: { readonly notBefore?: Date; readonly notAfter?: Date } = {},
): Promise<string> {
  const { uris, dns = [] } = 'uris' in names ? names : { uris: names }
  const all = [
    ...uris.map((value) => ({ type: 'url' as const, value })),
    ...dns.map((value) => ({ type: 'dns' as const, value })),
  ]
  const named = all.length === 0 ? [] : [new x509.SubjectAlternativeNameExtension(all, true)]
  return signed(ca, { subject: '', publicKey, extensions: named, ...dates })
}

type SignedParts = Pick<x509.X509CertificateCreateParams, 'notBefore' | 'notAfter' | 'extensions'> & {
  readonly subject: string
  readonly publicKey: x509.PublicKeyType
}

/** Of an hour, unless it says otherwise. */
async function signed(ca: TestCa, parts: SignedParts): Promise<string> {
  const certificate = await x509.X509CertificateGenerator.create({
    issuer: ca.certificate.subjectName,
    signingKey: ca.keys.privateKey,
    signingAlgorithm: algorithms[ca.kind],
    notBefore: new Date(Date.now() - 60_000),
    notAfter: new Date(Date.now() + 3_600_000),
    ...parts,
  })
  return `${certificate.toString('pem')}\n`
}

/** A revocation list of the CA with these serial numbers (hex), PEM. */
export async function makeCrl(ca: TestCa, serials: readonly string[]): Promise<string> {
  const crl = await x509.X509CrlGenerator.create({
    issuer: ca.certificate.subjectName,
    thisUpdate: new Date(),
    nextUpdate: new Date(Date.now() + 3_600_000),
    entries: serials.map((serialNumber) => ({ serialNumber, revocationDate: new Date() })),
    signingKey: ca.keys.privateKey,
    signingAlgorithm: algorithms[ca.kind],
  })
  return toPem('X509 CRL', new Uint8Array(crl.rawData))
}

export { x509 }
