// The certificate of the node's HTTPS port, signed by the cluster's CA on request; kept in the node's directory.
import { webcrypto, X509Certificate } from 'node:crypto'
import { join } from 'node:path'
import type { KubeObject, Resource } from '../../api/index.ts'
import type { KubeClient } from '../../kube/index.ts'
import { readIfThere, writeFileAtomic } from '../files.ts'

export interface ServingCertificate {
  readonly certificate: string
  readonly key: string
}

const requests: Resource = {
  group: 'certificates.k8s.io',
  version: 'v1',
  kind: 'CertificateSigningRequest',
  plural: 'certificatesigningrequests',
  namespaced: false,
}

const renewBeforeMs = 30 * 24 * 3600 * 1000

/** The kept certificate while it is good for these addresses and signed by this CA; a new one otherwise. */
export async function servingCertificate(
  client: KubeClient,
  node: { readonly name: string; readonly ips: readonly string[] },
  directory: string,
  ca: string,
): Promise<ServingCertificate> {
  const certificate = await readIfThere(join(directory, 'kubelet.crt'))
  const key = await readIfThere(join(directory, 'kubelet.key'))
  if (certificate !== undefined && key !== undefined && isGood(certificate, ca, node.ips)) return { certificate, key }
  const fresh = await requestCertificate(client, node)
  await writeFileAtomic(join(directory, 'kubelet.key'), fresh.key, 0o600)
  await writeFileAtomic(join(directory, 'kubelet.crt'), fresh.certificate)
  return fresh
}

function isGood(pem: string, ca: string, ips: readonly string[]): boolean {
  const certificate = new X509Certificate(pem)
  return (
    certificate.verify(new X509Certificate(ca).publicKey) &&
    Date.parse(certificate.validTo) - renewBeforeMs > Date.now() &&
    ips.every((ip) => certificate.checkIP(ip) !== undefined)
  )
}

async function requestCertificate(
  client: KubeClient,
  node: { readonly name: string; readonly ips: readonly string[] },
): Promise<ServingCertificate> {
  // Loaded only here: a node that has its certificate does without the library.
  await import('reflect-metadata')
  const x509 = await import('@peculiar/x509')
  x509.cryptoProvider.set(webcrypto as unknown as typeof globalThis.crypto)
  const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' }
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])
  const request = await x509.Pkcs10CertificateRequestGenerator.create({
    name: `O=system:nodes, CN=system:node:${node.name}`,
    keys,
    signingAlgorithm: algorithm,
    extensions: [
      new x509.SubjectAlternativeNameExtension([
        { type: 'dns', value: node.name },
        ...node.ips.map((value) => ({ type: 'ip' as const, value })),
      ]),
    ],
  })
  const name = `node-serving-${node.name}-${Date.now().toString(36)}`
  const object: KubeObject = {
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    metadata: { name },
    spec: {
      request: Buffer.from(request.toString('pem')).toString('base64'),
      signerName: 'kubernetes.io/kubelet-serving',
      usages: ['digital signature', 'server auth'],
    },
  }
  const created = await client.create(requests, object)
  const approved = {
    ...created,
    status: {
      conditions: [
        { type: 'Approved', status: 'True', reason: 'NodeServing', message: 'asked for by the node itself' },
      ],
    },
  }
  await client.replace(requests, approved, { subresource: 'approval' })
  const certificate = await issuedCertificate(client, name)
  const pkcs8 = Buffer.from(await webcrypto.subtle.exportKey('pkcs8', keys.privateKey)).toString('base64')
  await client.delete(requests, { name })
  const lines = pkcs8.match(/.{1,64}/g) ?? []
  return { certificate, key: `-----BEGIN PRIVATE KEY-----\n${lines.join('\n')}\n-----END PRIVATE KEY-----\n` }
}

async function issuedCertificate(client: KubeClient, name: string): Promise<string> {
  const informer = client.informer<
    KubeObject<unknown, { certificate?: string; conditions?: { type: string; message?: string }[] }>
  >(requests, { fieldSelector: `metadata.name=${name}` })
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  const timer = setTimeout(() => reject(new Error(`certificate request ${name} was not answered within 30 s`)), 30_000)
  informer.subscribe((changes) => {
    for (const { object } of changes) {
      const failed = object.status?.conditions?.find(({ type }) => type === 'Failed' || type === 'Denied')
      if (failed !== undefined) reject(new Error(`certificate request ${name}: ${failed.message ?? failed.type}`))
      if (object.status?.certificate) resolve(Buffer.from(object.status.certificate, 'base64').toString('utf8'))
    }
  })
  try {
    return await promise
  } finally {
    clearTimeout(timer)
    await informer[Symbol.asyncDispose]()
  }
}
