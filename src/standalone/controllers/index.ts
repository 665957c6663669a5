// The controllers of a cluster: scheduler, workloads, endpoints, service accounts, node lifecycle.
// In: a client of the API server and the CA of that server. Out: writes to the API.
import type { KubeClient } from '../../kube/index.ts'
import type { Scope } from '../../observability/index.ts'
import { clusterSynced, createCluster } from './cluster.ts'
import { startDaemonSets } from './daemon-sets.ts'
import { startDeployments } from './deployments.ts'
import { startDisruptionBudgets } from './disruption-budgets.ts'
import { startEndpointSlices } from './endpoint-slices.ts'
import { startJobs } from './jobs.ts'
import { startNodeCertificates } from './node-certificates.ts'
import { startNodeLifecycle } from './node-lifecycle.ts'
import { startReplicaSets } from './replica-sets.ts'
import { startScheduler } from './scheduler.ts'
import { startServiceAccounts } from './service-accounts.ts'
import { startStatefulSets } from './stateful-sets.ts'

export interface ControllersOptions {
  readonly client: KubeClient
  /** What the scheduler writes with. */
  readonly scheduler: KubeClient
  readonly log: Scope
  /** PEM of the CA of the API server, which pods find in kube-root-ca.crt. */
  readonly rootCertificates: string
}

/** Runs until disposed. Resolves when the first lists are complete and the controllers work. The clients stay the caller's. */
export async function startControllers({
  client,
  scheduler,
  log,
  rootCertificates,
}: ControllersOptions): Promise<AsyncDisposable> {
  const cluster = createCluster(client, log)
  await clusterSynced(cluster)
  const controllers = [
    startServiceAccounts(cluster, rootCertificates),
    startScheduler({ ...cluster, client: scheduler }),
    startReplicaSets(cluster),
    startDeployments(cluster),
    startStatefulSets(cluster),
    startDaemonSets(cluster),
    startJobs(cluster),
    startDisruptionBudgets(cluster),
    startEndpointSlices(cluster),
    startNodeLifecycle(cluster),
    startNodeCertificates(cluster),
  ]
  log.info('controllers started')
  return {
    async [Symbol.asyncDispose]() {
      await Promise.all(controllers.map((controller) => controller[Symbol.asyncDispose]()))
      await cluster[Symbol.asyncDispose]()
    },
  }
}
