// Certificates for tests: a root that signs leaves with SPIFFE ids.
import 'reflect-metadata'
import * as x509 from '@peculiar/x509'

const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const
const dayMs = 24 * 3600 * 1000

export interface TestCredentials {
  readonly privateKey: string
  readonly certificateChain: string
  readonly roots: string
}

export interface TestAuthority {
  readonly root: string
  issue(...spiffeIds: string[]): Promise<TestCredentials>
  /** Good for servers, or for clients, only. */
  issueFor(use: 'server' | 'client', spiffeId: string): Promise<TestCredentials>
}

/** A new root; leaves are valid for a day, for server and client authentication. */
export async function createTestAuthority(): Promise<TestAuthority> {
  const keys = await crypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])
  const validity = { notBefore: new Date(Date.now() - 60_000), notAfter: new Date(Date.now() + dayMs) }
  const root = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: '01',
    name: 'O=test',
    keys,
    signingAlgorithm: algorithm,
    ...validity,
    extensions: [
      new x509.BasicConstraintsExtension(true, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
    ],
  })
  const rootPem = `${root.toString('pem')}\n`
  let serial = 16
  const uses = { server: x509.ExtendedKeyUsage.serverAuth, client: x509.ExtendedKeyUsage.clientAuth }
  const issueWith = async (usages: x509.ExtendedKeyUsage[], spiffeIds: readonly string[]) => {
    const leafKeys = await crypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])
    serial += 1
    const leaf = await x509.X509CertificateGenerator.create({
      serialNumber: serial.toString(16),
      subject: '',
      issuer: root.subject,
      publicKey: leafKeys.publicKey,
      signingKey: keys.privateKey,
      signingAlgorithm: algorithm,
      ...validity,
      extensions: [
        new x509.SubjectAlternativeNameExtension(
          spiffeIds.map((value) => ({ type: 'url' as const, value })),
          true,
        ),
        new x509.ExtendedKeyUsageExtension(usages),
      ],
    })
    const key = Buffer.from(await crypto.subtle.exportKey('pkcs8', leafKeys.privateKey)).toString('base64')
    const body = key.match(/.{1,64}/g)?.join('\n')
    return {
      privateKey: `-----BEGIN PRIVATE KEY-----\n${body}\n-----END PRIVATE KEY-----\n`,
      certificateChain: `${leaf.toString('pem')}\n`,
      roots: rootPem,
    }
  }
  return {
    root: rootPem,
    issue: (...spiffeIds) => issueWith([uses.server, uses.client], spiffeIds),
    issueFor: (use, spiffeId) => issueWith([uses[use]], [spiffeId]),
  }
}
