// What the control plane writes to the API server, by one process at a time: root certificates, conditions, addresses, the renewed root.
import { setTimeout as sleep } from 'node:timers/promises'
import { resources } from '../api/index.ts'
import type { ProblemLog } from '../config/index.ts'
import { type AmbientIndex, type AmbientInputs, runAddressAllocation } from '../discovery/ambient/index.ts'
import { type KubeClient, runLeaderElection } from '../kube/index.ts'
import type { Scope } from '../observability/index.ts'
import type { OpenAuthority } from './authority.ts'
import { type Cluster, configurationKinds } from './cluster.ts'
import type { OtherKind } from './other-configuration.ts'
import { type CheckedObjects, writeProblems } from './problem-writer.ts'
import type { RemoteClusters } from './remote-clusters.ts'
import { leadRemoteClusters } from './remote-leadership.ts'
import type { Revisions } from './revisions.ts'
import { distributeRoot } from './root-distribution.ts'
import { selectedNamespaces } from './selected-namespaces.ts'
import type { DiscoverySettings } from './settings.ts'
import { writeConditions } from './status-writer.ts'
import type { WorkloadRegistration } from './workload-registration/index.ts'

export interface Leadership {
  readonly settings: DiscoverySettings
  readonly client: KubeClient
  readonly cluster: Cluster
  readonly others: readonly OtherKind[]
  readonly revisions: Pick<Revisions, 'owns'>
  readonly registration: Pick<WorkloadRegistration, 'sweep'>
  readonly remoteClusters: Pick<RemoteClusters, 'read' | 'subscribe'>
  readonly index: AmbientIndex
  readonly inputs: AmbientInputs
  readonly ca: OpenAuthority
  readonly problems: ProblemLog
  readonly log: Scope
}

/** Writes to the API server while it holds the lease, until the signal aborts. */
export async function lead(leadership: Leadership, signal: AbortSignal): Promise<void> {
  const { settings, client, log } = leadership
  if (!settings.leaderElection) return write(leadership, signal)
  await runLeaderElection(
    {
      client,
      namespace: settings.namespace,
      name: leaseName(settings),
      identity: settings.podName,
      lead: (leading) => write(leadership, leading),
      log,
    },
    signal,
  )
}

/** In every cluster the same, so that of several control planes that may lead one does. */
function leaseName({ revision }: Pick<DiscoverySettings, 'revision'>): string {
  return `lateen-leader${revision === 'default' ? '' : `-${revision}`}`
}

async function write(
  {
    settings,
    client,
    cluster,
    others,
    revisions,
    registration,
    remoteClusters,
    index,
    inputs,
    ca,
    problems,
    log,
  }: Leadership,
  signal: AbortSignal,
): Promise<void> {
  const allocation = settings.ambient.allocateAddresses
    ? runAddressAllocation({
        ...settings.addressRanges,
        exhausted: (entry, host, prefix) => log.error('no address is left for a host', { entry, host, prefix }),
        entries: inputs.collections.serviceEntries,
        patchStatus: async (entry, patch) => {
          await client.patch(
            resources.serviceEntries,
            entry.metadata,
            { kind: 'json', body: patch },
            { subresource: 'status' },
          )
        },
        failed: (entry, error) =>
          log.error('addresses could not be written', {
            entry: `${entry.metadata.namespace ?? ''}/${entry.metadata.name}`,
            reason: String(error),
          }),
        delay: (ms) => sleep(ms, undefined, { signal }),
      })
    : undefined
  const checked: readonly CheckedObjects[] = [
    ...configurationKinds.map((kind) => ({ resource: resources[kind], informer: cluster.informers[kind] })),
    ...others,
  ]
  const selected = selectedNamespaces(inputs, settings.namespace)
  const distribute = (to: KubeClient, namespaces: Cluster['informers']['namespaces'], until: AbortSignal) =>
    distributeRoot(to, namespaces, selected, ca.authority, settings.certificates, log, until)
  try {
    await Promise.all([
      distribute(client, cluster.informers.namespaces, signal),
      leadRemoteClusters(
        {
          remoteClusters,
          systemNamespace: settings.namespace,
          localId: settings.clusterId,
          leaseName: leaseName(settings),
          identity: `${settings.clusterId}/${settings.podName}`,
          lead: ({ connection }, leading) => distribute(connection.client, connection.namespaces, leading),
          log,
        },
        signal,
      ),
      ca.rotate(signal),
      registration.sweep(signal),
      writeProblems(
        {
          client,
          problems,
          objects: checked,
          owns: revisions.owns,
          reporter: settings.podName,
          mostAtOnce: settings.statusWriters,
          log,
        },
        signal,
      ),
      ...(settings.writeStatus
        ? [writeConditions(client, cluster, index.conditions, settings.statusWriters, log, signal)]
        : []),
    ])
  } finally {
    await allocation?.close()
  }
}
