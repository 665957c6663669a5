// The credentials of an instance's parts: each has a client certificate of its own, so that it can do what its work takes and no more.
import { X509Certificate } from 'node:crypto'
import { stringify } from 'yaml'
import {
  type Connection,
  type IssuedCertificate,
  type KubeClient,
  loadConnection,
  requestCertificate,
} from '../kube/index.ts'
import { writeFileAtomic } from './files.ts'

/** Who a part is to the API server. */
export type Part = { readonly kind: 'node'; readonly name: string } | { readonly kind: 'controllers' | 'scheduler' }

interface Identity {
  readonly commonName: string
  readonly organizations: readonly string[]
  readonly signerName: string
}

const renewBeforeMs = 30 * 24 * 3600 * 1000

function identityOf(part: Part): Identity {
  switch (part.kind) {
    case 'node':
      return {
        commonName: `system:node:${part.name}`,
        organizations: ['system:nodes'],
        signerName: 'kubernetes.io/kube-apiserver-client-kubelet',
      }
    case 'controllers':
      return forComponent('system:kube-controller-manager')
    case 'scheduler':
      return forComponent('system:kube-scheduler')
  }
}

function forComponent(commonName: string): Identity {
  return { commonName, organizations: [], signerName: 'kubernetes.io/kube-apiserver-client' }
}

export interface CredentialOptions {
  /** The administrator's. */
  readonly client: KubeClient
  readonly administrator: string
  readonly part: Part
  /** The kubeconfig to write; what it holds is kept while it is good. */
  readonly path: string
  /** The host by which the part reaches the API server; the port is that of the administrator's kubeconfig. */
  readonly host: string
}

/** Writes the part's kubeconfig, for its owner only. */
export async function writeCredentials({ client, administrator, part, path, host }: CredentialOptions): Promise<void> {
  const admin = await loadConnection({ kubeconfig: administrator })
  const { ca } = await admin.tls()
  if (ca === undefined) throw new Error(`${administrator} names no certificate authority`)
  const identity = identityOf(part)
  const kept = await keptCertificate(path, ca, identity)
  const issued =
    kept ??
    (await requestCertificate(client, {
      name: `lateen-${part.kind === 'node' ? `node-${part.name}` : part.kind}`,
      subject: identity,
      signerName: identity.signerName,
      usages: ['digital signature', 'client auth'],
      approval: 'a part of this instance, started by lateen up',
    }))
  await writeFileAtomic(path, kubeconfigText(identity.commonName, issued, ca, serverAt(admin, host)), 0o600)
}

/** The certificate of an earlier time, if it is of this authority and identity and lasts for a while. */
async function keptCertificate(path: string, ca: string, identity: Identity): Promise<IssuedCertificate | undefined> {
  try {
    const { cert, key } = await (await loadConnection({ kubeconfig: path })).tls()
    if (cert === undefined || key === undefined) return undefined
    const certificate = new X509Certificate(cert)
    const isGood =
      certificate.verify(new X509Certificate(ca).publicKey) &&
      certificate.subject === subjectText(identity) &&
      Date.parse(certificate.validTo) - renewBeforeMs > Date.now()
    return isGood ? { certificate: cert, key } : undefined
  } catch {
    // There is none, or none that can be read: the part gets a new one.
    return undefined
  }
}

function subjectText({ commonName, organizations }: Identity): string {
  return [...organizations.map((name) => `O=${name}`), `CN=${commonName}`].join('\n')
}

function serverAt({ server }: Connection, host: string): string {
  const url = new URL(server)
  url.hostname = host.includes(':') ? `[${host}]` : host
  return url.origin
}

function kubeconfigText(user: string, { certificate, key }: IssuedCertificate, ca: string, server: string): string {
  const base64 = (text: string): string => Buffer.from(text).toString('base64')
  const name = 'lateen'
  return stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': name,
    clusters: [{ name, cluster: { server, 'certificate-authority-data': base64(ca) } }],
    users: [{ name: user, user: { 'client-certificate-data': base64(certificate), 'client-key-data': base64(key) } }],
    contexts: [{ name, context: { cluster: name, user } }],
  })
}
