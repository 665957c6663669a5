// Objects that tests of the control plane put into clusters.
import { type KubeObject, resources } from '../../src/api/index.ts'
import { isKubeError, type KubeClient } from '../../src/kube/index.ts'

export const namespaceOf = (name: string, metadata: Partial<KubeObject['metadata']> = {}): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: { name, ...metadata },
})

export const configMapOf = (namespace: string, name: string, data: Readonly<Record<string, string>>): KubeObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { namespace, name },
  ...{ data },
})

/** A denial, selected by nothing. */
export const policyOf = (namespace: string, name: string, action = 'DENY'): KubeObject => ({
  apiVersion: 'security.istio.io/v1',
  kind: 'AuthorizationPolicy',
  metadata: { namespace, name },
  spec: { action, rules: [{ from: [{ source: { namespaces: ['x'] } }] }] },
})

/** A running pod on node `n` with the account `web`. */
export async function createPod(
  client: KubeClient,
  { namespace, name }: { readonly namespace: string; readonly name: string },
  ip: string,
  labels: Readonly<Record<string, string>> = {},
): Promise<void> {
  try {
    const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { namespace, name: 'web' } }
    await client.create(resources.serviceAccounts, account)
  } catch (error) {
    if (!isKubeError(error, 409)) throw error
  }
  await client.create(resources.pods, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { namespace, name, labels: { ...labels } },
    spec: { nodeName: 'n', serviceAccountName: 'web', containers: [{ name: 'app', image: 'host' }] },
  } as KubeObject)
  const status = { phase: 'Running', podIP: ip, podIPs: [{ ip }], conditions: [{ type: 'Ready', status: 'True' }] }
  await client.patch(
    resources.pods,
    { namespace, name },
    { kind: 'merge', body: { status } },
    { subresource: 'status' },
  )
}
