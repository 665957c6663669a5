// Keeps the trust bundle in a ClusterTrustBundle, where the API server serves that kind.
import type { KubeObject, Resource } from '../api/index.ts'
import { isKubeError, type KubeClient } from '../kube/index.ts'
import type { Scope } from '../observability/index.ts'
import type { MeshAuthority } from './authority.ts'
import { pendingWork, tellingAttempt } from './pending-work.ts'

export const trustBundleName = 'istio.io:istiod-ca:root-cert'
export const trustBundleSigner = 'istio.io/istiod-ca'

interface ClusterTrustBundle extends KubeObject<{ readonly signerName: string; readonly trustBundle: string }> {}

/** The newest version of the kind that the server knows. */
export async function trustBundleResource(client: KubeClient): Promise<Resource | undefined> {
  for (const version of ['v1', 'v1beta1', 'v1alpha1']) {
    const found = await client.resolve(`certificates.k8s.io/${version}`, 'ClusterTrustBundle')
    if (found !== undefined) return found
  }
  return undefined
}

/** Works until the signal aborts. */
export async function distributeTrustBundle(
  client: KubeClient,
  resource: Resource,
  authority: Pick<MeshAuthority, 'rootBundle' | 'subscribe'>,
  log: Scope,
  signal: AbortSignal,
): Promise<void> {
  await using bundles = client.informer<ClusterTrustBundle>(resource, {
    fieldSelector: `metadata.name=${trustBundleName}`,
  })
  const work = pendingWork(reconcile, (_, error, attempt) => {
    log[attempt === tellingAttempt ? 'error' : 'debug']('the ClusterTrustBundle could not be written', {
      attempt,
      reason: String(error),
    })
  })

  async function reconcile(): Promise<void> {
    if (authority.rootBundle === '') return
    const spec = { signerName: trustBundleSigner, trustBundle: authority.rootBundle }
    const present = bundles.get({ name: trustBundleName })
    if (present?.spec?.signerName === spec.signerName && present.spec.trustBundle === spec.trustBundle) return
    if (present !== undefined) {
      await client.patch(resource, { name: trustBundleName }, { kind: 'merge', body: { spec } })
      return
    }
    try {
      await client.create<ClusterTrustBundle>(resource, {
        apiVersion: `${resource.group}/${resource.version}`,
        kind: resource.kind,
        metadata: { name: trustBundleName, labels: { 'istio.io/config': 'true' } },
        spec,
      })
    } catch (error) {
      // Another replica was first: the informer tells of it.
      if (!isKubeError(error, 409)) throw error
    }
  }

  const look = (): void => work.add(trustBundleName)
  const ends = [bundles.subscribe(look), authority.subscribe(look)]
  bundles.synced.then(look, () => {})
  try {
    await work.run(signal)
  } finally {
    for (const end of ends) end()
  }
}
