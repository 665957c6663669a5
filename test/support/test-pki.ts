// A certificate authority for tests: real certificates from the product's own CA, kept in memory.
import {
  createAuthority,
  loadOrCreateSelfSigned,
  type SelfAuthority,
  type ServingCertificate,
} from '../../src/ca/index.ts'

export interface TestPki {
  readonly authority: SelfAuthority
  readonly roots: string
  /** A certificate for a server or a client, by DNS names, IPs or SPIFFE ids. */
  issue(...names: string[]): Promise<ServingCertificate>
}

export async function createTestPki(): Promise<TestPki> {
  const { material } = await loadOrCreateSelfSigned(
    { read: async () => undefined, create: async () => true, replace: async () => {} },
    { organization: 'test', ttlSeconds: 86_400 },
  )
  const authority = createAuthority({ material, defaultTtlSeconds: 3600, maxTtlSeconds: 86_400 })
  return { authority, roots: authority.rootBundle, issue: (...names) => authority.issueServingCertificate(names, 3600) }
}
