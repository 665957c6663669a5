// The certificate of the node's HTTPS port, signed by the cluster's CA once a controller has approved it; kept in the node's directory.
import { X509Certificate } from 'node:crypto'
import { join } from 'node:path'
import { type IssuedCertificate, type KubeClient, requestCertificate } from '../../kube/index.ts'
import { readIfThere, writeFileAtomic } from '../files.ts'

const renewBeforeMs = 30 * 24 * 3600 * 1000

/** The kept certificate while it is good for these addresses and signed by this CA; a new one otherwise. */
export async function servingCertificate(
  client: KubeClient,
  node: { readonly name: string; readonly ips: readonly string[] },
  directory: string,
  ca: string,
): Promise<IssuedCertificate> {
  const certificate = await readIfThere(join(directory, 'kubelet.crt'))
  const key = await readIfThere(join(directory, 'kubelet.key'))
  if (certificate !== undefined && key !== undefined && isGood(certificate, ca, node.ips)) return { certificate, key }
  const fresh = await requestCertificate(client, {
    name: `node-serving-${node.name}`,
    subject: { commonName: `system:node:${node.name}`, organizations: ['system:nodes'] },
    names: { dns: [node.name], ips: node.ips },
    signerName: 'kubernetes.io/kubelet-serving',
    usages: ['digital signature', 'server auth'],
  })
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
