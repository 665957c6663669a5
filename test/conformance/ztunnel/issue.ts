// A certificate chain for a request: leaf, intermediate and two roots, as PEM by name.
import 'reflect-metadata'
import { webcrypto } from 'node:crypto'
import {
  BasicConstraintsExtension,
  type Extension,
  Pkcs10CertificateRequest,
  SubjectAlternativeNameExtension,
  type X509Certificate,
  X509CertificateGenerator,
} from '@peculiar/x509'

const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' }

export async function issueChain(identity: string, csrPem: string): Promise<Readonly<Record<string, string>>> {
  const keys = () => webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])
  const [rootKeys, otherKeys, intermediateKeys] = await Promise.all([keys(), keys(), keys()])
  const validity = { notBefore: new Date(Date.now() - 60_000), notAfter: new Date(Date.now() + 3_600_000) }
  const authority = [new BasicConstraintsExtension(true, undefined, true)]
  const root = await X509CertificateGenerator.createSelfSigned({
    name: 'O=one',
    keys: rootKeys,
    signingAlgorithm: algorithm,
    extensions: authority,
    ...validity,
  })
  const other = await X509CertificateGenerator.createSelfSigned({
    name: 'O=two',
    keys: otherKeys,
    signingAlgorithm: algorithm,
    extensions: authority,
    ...validity,
  })
  const signed = (
    subject: string,
    issuer: string,
    publicKey: webcrypto.CryptoKey,
    signingKey: webcrypto.CryptoKey,
    extensions: Extension[],
  ) =>
    X509CertificateGenerator.create({
      subject,
      issuer,
      publicKey,
      signingKey,
      signingAlgorithm: algorithm,
      extensions,
      ...validity,
    })
  const intermediate = await signed('O=between', 'O=one', intermediateKeys.publicKey, rootKeys.privateKey, authority)
  const request = new Pkcs10CertificateRequest(csrPem)
  const leafKey = await request.publicKey.export(algorithm, ['verify'])
  const names = new SubjectAlternativeNameExtension([{ type: 'url', value: identity }], true)
  const leaf = await signed('', 'O=between', leafKey, intermediateKeys.privateKey, [names])
  const pem = (certificate: X509Certificate): string => certificate.toString('pem')
  return { leaf: pem(leaf), intermediate: pem(intermediate), root1: pem(root), root2: pem(other) }
}
