// Objects of a cluster as tests of the control plane make them: namespaces, pods that run, tokens, the mesh's roots.
import { type KubeObject, resources } from '../../src/api/index.ts'
import { isKubeError, type KubeClient } from '../../src/kube/index.ts'

export const namespaceNamed = (name: string, labels: Readonly<Record<string, string>> = {}): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: { name, labels: { ...labels } },
})

/** Workloads outside of the cluster register themselves by it, with this service account. */
export const workloadGroupOf = (namespace: string, name: string, account: string, spec: object = {}): KubeObject => ({
  apiVersion: 'networking.istio.io/v1',
  kind: 'WorkloadGroup',
  metadata: { namespace, name },
  ...{ spec: { template: { serviceAccount: account }, ...spec } },
})

export const configMapOf = (namespace: string, name: string, data: Readonly<Record<string, string>>): KubeObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { namespace, name },
  ...{ data },
})

/** Makes the service account unless it is there. */
export async function ensureServiceAccount(client: KubeClient, namespace: string, name: string): Promise<void> {
  if ((await client.get(resources.serviceAccounts, { namespace, name })) !== undefined) return
  await client
    .create(resources.serviceAccounts, { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { namespace, name } })
    .catch((error: unknown) => {
      if (!isKubeError(error, 409)) throw error
    })
}

/** A pod on `node1` that is running and ready under an address. */
export async function createRunningPod(
  client: KubeClient,
  key: { readonly namespace: string; readonly name: string },
  { ip, account }: { readonly ip: string; readonly account: string },
): Promise<KubeObject> {
  await ensureServiceAccount(client, key.namespace, account)
  const pod: KubeObject = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { ...key },
    spec: {
      nodeName: 'node1',
      serviceAccountName: account,
      containers: [{ name: 'app', image: 'host', command: ['true'] }],
    },
  }
  const created = await client.create(resources.pods, pod)
  const status = { phase: 'Running', podIP: ip, podIPs: [{ ip }], conditions: [{ type: 'Ready', status: 'True' }] }
  await client.patch(resources.pods, key, { kind: 'merge', body: { status } }, { subresource: 'status' })
  return created
}

/** A token of the service account, bound to the pod where one is given. */
export async function tokenOf(
  client: KubeClient,
  key: { readonly namespace: string; readonly name: string },
  { audience = 'istio-ca', pod }: { readonly audience?: string; readonly pod?: KubeObject } = {},
): Promise<string> {
  const bound =
    pod === undefined
      ? {}
      : { boundObjectRef: { apiVersion: 'v1', kind: 'Pod', name: pod.metadata.name, uid: pod.metadata.uid } }
  const request = {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenRequest',
    spec: { audiences: [audience], ...bound },
  }
  const { status } = await client.createSubresource<{ status: { token: string } }>(
    resources.serviceAccounts,
    key,
    'token',
    request,
  )
  return status.token
}

/** The roots of the control plane's own authority. */
export async function meshRoots(client: KubeClient): Promise<string> {
  const key = { namespace: 'istio-system', name: 'istio-ca-secret' }
  const secret = await client.get<KubeObject & { data: Record<string, string> }>(resources.secrets, key)
  return Buffer.from(secret?.data['root-cert.pem'] ?? '', 'base64').toString()
}
