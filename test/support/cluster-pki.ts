// The authority of a cluster for tests, with the certificates of its API server and its administrator.
import { keyPem, makeCa, makeKeys, x509 } from './ca.ts'

export interface KeyPair {
  readonly certificate: string
  readonly key: string
}

export interface ClusterPki {
  readonly ca: string
  readonly server: KeyPair
  readonly admin: KeyPair
}

const dayMs = 24 * 3_600_000

export async function createClusterPki(): Promise<ClusterPki> {
  const ca = await makeCa({ name: 'kubernetes' })

  async function issue(name: x509.JsonName, use: string, names: x509.JsonGeneralName[]): Promise<KeyPair> {
    const keys = await makeKeys('ecP256')
    const certificate = await x509.X509CertificateGenerator.create({
      subject: new x509.Name(name),
      issuer: ca.certificate.subjectName,
      publicKey: keys.publicKey,
      signingKey: ca.keys.privateKey,
      signingAlgorithm: { name: 'ECDSA', hash: 'SHA-256' },
      notBefore: new Date(Date.now() - 60_000),
      notAfter: new Date(Date.now() + dayMs),
      extensions: [
        new x509.ExtendedKeyUsageExtension([use]),
        ...(names.length === 0 ? [] : [new x509.SubjectAlternativeNameExtension(names)]),
      ],
    })
    return { certificate: `${certificate.toString('pem')}\n`, key: await keyPem(keys) }
  }

  return {
    ca: ca.pem,
    server: await issue([{ CN: ['kube-apiserver'] }], x509.ExtendedKeyUsage.serverAuth, [
      { type: 'ip', value: '127.0.0.1' },
      { type: 'dns', value: 'kubernetes.default.svc' },
    ]),
    admin: await issue([{ O: ['system:masters'] }, { CN: ['admin'] }], x509.ExtendedKeyUsage.clientAuth, []),
  }
}
