// Certificates by the API of the cluster: a key of our own, a CertificateSigningRequest, and what the signer makes of it.
import { webcrypto } from 'node:crypto'
import { type KubeObject, resources } from '../api/index.ts'
import { KubeError } from './errors.ts'
import type { KubeClient } from './types.ts'

export interface CertificateRequestOptions {
  /** The name of the CertificateSigningRequest; digits that make it unique are added. */
  readonly name: string
  readonly subject: { readonly commonName: string; readonly organizations?: readonly string[] }
  readonly names?: { readonly dns?: readonly string[]; readonly ips?: readonly string[] }
  /** Such as `kubernetes.io/kubelet-serving`. */
  readonly signerName: string
  /** Such as `digital signature`, `client auth`. */
  readonly usages: readonly string[]
  /** Why the caller approves its own request, and deletes it afterwards; without it somebody else has to approve. */
  readonly approval?: string
  /** How long approval and signature may take, in milliseconds. Default: 30 seconds. */
  readonly timeoutMs?: number
}

/** PEM texts. */
export interface IssuedCertificate {
  readonly certificate: string
  readonly key: string
}

type SigningRequest = KubeObject<
  { request: string; signerName: string; usages: readonly string[] },
  { certificate?: string; conditions?: readonly { type: string; status: string; reason?: string; message?: string }[] }
>

const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' }

/** Rejects with a KubeError: of the API, or (code 0) with reason `Denied`, `Failed` or `Timeout`. */
export async function requestCertificate(
  client: KubeClient,
  options: CertificateRequestOptions,
): Promise<IssuedCertificate> {
  const { request, key } = await createRequest(options)
  const created = await client.create<SigningRequest>(resources.certificateSigningRequests, {
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    metadata: { name: `${options.name}-${Date.now().toString(36)}` },
    spec: { request, signerName: options.signerName, usages: options.usages },
  })
  if (options.approval === undefined) return { certificate: await issued(client, created, options), key }
  try {
    const condition = {
      type: 'Approved',
      status: 'True',
      reason: 'RequestedByAdministrator',
      message: options.approval,
    }
    await client.replace(
      resources.certificateSigningRequests,
      { ...created, status: { conditions: [condition] } },
      { subresource: 'approval' },
    )
    return { certificate: await issued(client, created, options), key }
  } finally {
    await client.delete(resources.certificateSigningRequests, { name: created.metadata.name })
  }
}

async function createRequest({
  subject: { commonName, organizations = [] },
  names: { dns = [], ips = [] } = {},
}: CertificateRequestOptions): Promise<{ request: string; key: string }> {
  // Loaded only here: most processes never ask for a certificate.
  await import('reflect-metadata')
  const x509 = await import('@peculiar/x509')
  x509.cryptoProvider.set(webcrypto as unknown as typeof globalThis.crypto)
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])
  const alternatives = [
    ...dns.map((value) => ({ type: 'dns' as const, value })),
    ...ips.map((value) => ({ type: 'ip' as const, value })),
  ]
  const request = await x509.Pkcs10CertificateRequestGenerator.create({
    name: [...organizations.map((name) => ({ O: [name] })), { CN: [commonName] }],
    keys,
    signingAlgorithm: algorithm,
    extensions: alternatives.length === 0 ? [] : [new x509.SubjectAlternativeNameExtension(alternatives)],
  })
  const pkcs8 = await webcrypto.subtle.exportKey('pkcs8', keys.privateKey)
  return {
    request: Buffer.from(request.toString('pem')).toString('base64'),
    key: `${x509.PemConverter.encode(pkcs8, 'PRIVATE KEY')}\n`,
  }
}

async function issued(
  client: KubeClient,
  { metadata: { name } }: SigningRequest,
  { timeoutMs = 30_000 }: CertificateRequestOptions,
): Promise<string> {
  const informer = client.informer<SigningRequest>(resources.certificateSigningRequests, {
    fieldSelector: `metadata.name=${name}`,
  })
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  const fail = (reason: string, message: string): void =>
    reject(new KubeError(`certificate request ${name}: ${message}`, { code: 0, reason }))
  const timer = setTimeout(() => fail('Timeout', `not answered within ${timeoutMs} ms`), timeoutMs)
  informer.subscribe((changes) => {
    for (const { object } of changes) {
      const { conditions = [], certificate = '' } = object.status ?? {}
      const refused = conditions.find(({ type }) => type === 'Failed' || type === 'Denied')
      if (refused !== undefined) fail(refused.type, refused.message ?? refused.reason ?? refused.type)
      if (certificate !== '') resolve(Buffer.from(certificate, 'base64').toString('utf8'))
    }
  })
  try {
    return await promise
  } finally {
    clearTimeout(timer)
    await informer[Symbol.asyncDispose]()
  }
}
