// Kubernetes client: typed requests, list and watch, informers, leader election. Only documented API behaviour is relied on.
import { type ClientOptions, clientOf } from './client.ts'
import { loadConnection } from './connection.ts'
import type { KubeClient } from './types.ts'

export { type CertificateRequestOptions, type IssuedCertificate, requestCertificate } from './certificate-request.ts'
export { type ClientOptions, clientOf } from './client.ts'
export {
  type Connection,
  clusterOfText,
  connectionOfText,
  inClusterConnection,
  loadConnection,
  riskyKubeconfigOptions,
  type TlsMaterial,
} from './connection.ts'
export { isKubeError, KubeError } from './errors.ts'
export type { KubeLog } from './informer.ts'
export { type LeaderElectionOptions, type LeaseTimes, runLeaderElection } from './leader-election.ts'
export { openPodPort, type PodAnswer, type PodPort, requestPod } from './port-forward.ts'
export type * from './types.ts'

/**
 * A client of the API server that kubectl would use: the given kubeconfig, else the one in `KUBECONFIG`, else the pod's service account, else
 * `~/.kube/config`. No request is made before the first call.
 *
 *     const client = await createKubeClient({ kubeconfig: '/tmp/kubeconfig' })
 *     const { items } = await client.list(resources.pods, { namespace: 'default' })
 */
export async function createKubeClient(
  options: ClientOptions & { readonly kubeconfig?: string; readonly context?: string } = {},
): Promise<KubeClient> {
  return clientOf(await loadConnection(options), options)
}
export { type Applied, type ApplyOptions, applyManifests, deleteManifests } from './manifests/apply.ts'
export {
  describeProblem,
  type Manifest,
  ManifestError,
  type ManifestProblem,
  parseField,
  parseManifests,
  readManifests,
} from './manifests/read.ts'
