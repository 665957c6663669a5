// A certificate authority for tests: real certificates from the product's own CA, kept in memory.
import { toPem } from '../../src/util/index.ts'
import 'reflect-metadata'
import { webcrypto } from 'node:crypto'
import * as x509 from '@peculiar/x509'
import {
  createAuthority,
  loadOrCreateSelfSigned,
  type SelfAuthority,
  type ServingCertificate,
} from '../../src/ca/index.ts'
import { makeCa, makeLeaf } from './ca.ts'

export interface TestPki {
  readonly authority: SelfAuthority
  readonly roots: string
  /** A certificate for a server or a client, by DNS names, IPs or SPIFFE ids. */
  issue(...names: string[]): Promise<ServingCertificate>
  /** A certificate for a SPIFFE id with the dates given, for a key of its own (which is returned) or for that of a request (PEM). */
  issueDated(
    spiffeId: string,
    dates: { readonly notBefore: Date; readonly notAfter: Date },
    key?: { readonly publicKeyOf?: string },
  ): Promise<Pick<ServingCertificate, 'privateKey' | 'chain'>>
  /** An authority below the root, by its serial number (hex), and certificates of it, with its own behind them. */
  intermediate(): Promise<{
    readonly serial: string
    issue(spiffeId: string): Promise<Pick<ServingCertificate, 'privateKey' | 'chain'>>
  }>
  /** A revocation list of the root with these serial numbers (hex), PEM. */
  revocationList(serials: readonly string[]): Promise<string>
}

export async function createTestPki(): Promise<TestPki> {
  const { material } = await loadOrCreateSelfSigned(
    { read: async () => undefined, create: async () => true, replace: async () => {} },
    { organization: 'test', ttlSeconds: 86_400 },
  )
  const authority = createAuthority({ material, defaultTtlSeconds: 3600, maxTtlSeconds: 86_400 })
  return {
    authority,
    roots: authority.rootBundle,
    issue: (...names) => authority.issueServingCertificate(names, 3600),
    async issueDated(spiffeId, dates, { publicKeyOf } = {}) {
      const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' }
      const keys = await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])
      const leaf = await x509.X509CertificateGenerator.create({
        serialNumber: '0123456789',
        issuer: material.certificate.subjectName,
        subject: '',
        publicKey:
          publicKeyOf === undefined
            ? keys.publicKey
            : await new x509.Pkcs10CertificateRequest(publicKeyOf).publicKey.export(),
        signingKey: material.key.signingKey,
        signingAlgorithm: material.key.algorithm,
        ...dates,
        extensions: [
          new x509.SubjectAlternativeNameExtension([{ type: 'url', value: spiffeId }], true),
          new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth, x509.ExtendedKeyUsage.clientAuth]),
        ],
      })
      const der = new Uint8Array(await webcrypto.subtle.exportKey('pkcs8', keys.privateKey))
      return { privateKey: toPem('PRIVATE KEY', der), chain: `${leaf.toString('pem')}\n` }
    },
    async intermediate() {
      const issuer = { certificate: material.certificate, keys: { privateKey: material.key.signingKey } }
      const authority = await makeCa({ name: 'intermediate', issuer })
      return {
        serial: authority.certificate.serialNumber,
        async issue(spiffeId) {
          const { pem, key } = await makeLeaf(authority, { uris: [spiffeId] })
          return { privateKey: key, chain: pem + authority.pem }
        },
      }
    },
    async revocationList(serials) {
      const list = await x509.X509CrlGenerator.create({
        issuer: material.certificate.subjectName,
        thisUpdate: new Date(),
        nextUpdate: new Date(Date.now() + 3_600_000),
        entries: serials.map((serialNumber) => ({ serialNumber, revocationDate: new Date() })),
        signingKey: material.key.signingKey,
        signingAlgorithm: material.key.algorithm,
      })
      return toPem('X509 CRL', new Uint8Array(list.rawData))
    },
  }
}
