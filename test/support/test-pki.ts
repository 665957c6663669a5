// A certificate authority for tests: real certificates from the product's own CA, kept in memory.
import 'reflect-metadata'
import * as x509 from '@peculiar/x509'
import {
  createAuthority,
  loadOrCreateSelfSigned,
  type SelfAuthority,
  type ServingCertificate,
  toPem,
} from '../../src/ca/index.ts'

export interface TestPki {
  readonly authority: SelfAuthority
  readonly roots: string
  /** A certificate for a server or a client, by DNS names, IPs or SPIFFE ids. */
  issue(...names: string[]): Promise<ServingCertificate>
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
