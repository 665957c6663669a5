// Certificates from a signer of the cluster: a CertificateSigningRequest is created, approved, awaited and deleted.
import { type KubeObject, type Resource, resources } from '../api/index.ts'
import type { SignInCluster } from '../ca/index.ts'
import type { KubeClient } from '../kube/index.ts'

interface Condition {
  readonly type: string
  readonly status: string
  readonly reason?: string
  readonly message?: string
}

type SigningRequest = KubeObject<
  {
    readonly request: string
    readonly signerName: string
    readonly expirationSeconds: number
    readonly usages: readonly string[]
  },
  { conditions?: Condition[]; certificate?: string }
>

const resource: Resource = resources.certificateSigningRequests
const ended = new Set(['Denied', 'Failed'])

/** Rejects when the request is denied, when signing fails, when it takes longer than `timeoutMs`, and when the signal aborts. */
export function signThroughRequests(client: KubeClient, signal: AbortSignal, timeoutMs = 60_000): SignInCluster {
  return async ({ csrPem, signerName, expirationSeconds, usages }) => {
    const created = await client.create<SigningRequest>(resource, {
      apiVersion: 'certificates.k8s.io/v1',
      kind: 'CertificateSigningRequest',
      metadata: { name: '', generateName: 'csr-workload-' },
      spec: {
        request: Buffer.from(csrPem).toString('base64'),
        signerName,
        // The API takes nothing shorter.
        expirationSeconds: Math.max(600, expirationSeconds),
        usages: [...usages],
      },
    })
    const { name } = created.metadata
    try {
      await client.replace<SigningRequest>(resource, approved(created), { subresource: 'approval' })
      return await certificateOf(client, name, timeoutMs, signal)
    } finally {
      // A request that cannot be deleted is swept by the cluster.
      await client.delete(resource, { name }).catch(() => false)
    }
  }
}

function approved(request: SigningRequest): SigningRequest {
  const condition = {
    type: 'Approved',
    status: 'True',
    reason: 'MeshIdentity',
    message: 'The caller proved this identity',
  }
  return { ...request, status: { ...request.status, conditions: [condition] } }
}

async function certificateOf(
  client: KubeClient,
  name: string,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<string> {
  signal.throwIfAborted()
  await using informer = client.informer<SigningRequest>(resource, { fieldSelector: `metadata.name=${name}` })
  const outcome = Promise.withResolvers<string>()
  const timer = setTimeout(
    () => outcome.reject(new Error(`CertificateSigningRequest ${name} was not signed within ${timeoutMs} ms`)),
    timeoutMs,
  )
  const abort = (): void => outcome.reject(signal.reason)
  signal.addEventListener('abort', abort, { once: true })
  const stop = informer.subscribe((changes) => {
    for (const { kind, object } of changes) {
      const failure = object.status?.conditions?.find(({ type, status }) => ended.has(type) && status === 'True')
      if (failure !== undefined) {
        outcome.reject(
          new Error(`CertificateSigningRequest ${name}: ${failure.type}: ${failure.message ?? failure.reason}`),
        )
      } else if (object.status?.certificate) {
        outcome.resolve(Buffer.from(object.status.certificate, 'base64').toString())
      } else if (kind === 'deleted') {
        outcome.reject(new Error(`CertificateSigningRequest ${name} was deleted before it was signed`))
      }
    }
  })
  try {
    return await outcome.promise
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', abort)
    stop()
  }
}
