// A signer of a cluster for tests.
import { type KubeObject, resources } from '../../src/api/index.ts'
import type { KubeClient } from '../../src/kube/index.ts'
import { type TestCa, x509 } from './ca.ts'

type SigningRequest = KubeObject<
  { request: string; signerName: string; usages: string[]; expirationSeconds: number },
  { conditions?: { type: string; status: string }[]; certificate?: string }
>

/** A controller that signs approved requests of its name, as cert-manager and others do. */
export function followSigner(client: KubeClient, name: string, ca: TestCa) {
  const usages: string[][] = []
  const names: string[] = []
  const resource = resources.certificateSigningRequests
  const informer = client.informer<SigningRequest>(resource)
  const open = new Set<string>()
  const emptied = Promise.withResolvers<void>()
  async function sign(request: SigningRequest): Promise<void> {
    const csr = new x509.Pkcs10CertificateRequest(Buffer.from(request.spec?.request ?? '', 'base64').toString())
    const alternative = csr.extensions.find(({ type }) => type === '2.5.29.17')
    const leaf = await x509.X509CertificateGenerator.create({
      issuer: ca.certificate.subjectName,
      subject: new x509.Name([]),
      publicKey: csr.publicKey,
      signingKey: ca.keys.privateKey,
      signingAlgorithm: { name: 'ECDSA', hash: 'SHA-256' },
      notBefore: new Date(Date.now() - 60_000),
      notAfter: new Date(Date.now() + (request.spec?.expirationSeconds ?? 0) * 1000),
      extensions: alternative === undefined ? [] : [new x509.SubjectAlternativeNameExtension(alternative.rawData)],
    })
    const certificate = Buffer.from(`${leaf.toString('pem')}\n${ca.pem}`).toString('base64')
    await client.replace(
      resource,
      { ...request, status: { ...request.status, certificate } },
      { subresource: 'status' },
    )
  }
  informer.subscribe((changes) => {
    for (const { kind, object } of changes) {
      if (kind === 'deleted') {
        open.delete(object.metadata.name)
        if (open.size === 0 && usages.length > 1) emptied.resolve()
        continue
      }
      open.add(object.metadata.name)
      const isApproved = object.status?.conditions?.some(({ type }) => type === 'Approved') === true
      if (object.spec?.signerName !== name || !isApproved || object.status?.certificate !== undefined) continue
      usages.push(object.spec.usages)
      names.push(object.metadata.name)
      sign(object).catch(() => {})
    }
  })
  return {
    usages,
    /** Of the requests that were signed. */
    names,
    /** Every request has been deleted after it was signed. */
    emptied: emptied.promise,
    [Symbol.asyncDispose]: () => informer[Symbol.asyncDispose](),
  }
}
