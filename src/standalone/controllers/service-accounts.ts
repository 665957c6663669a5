// Gives each namespace its `default` service account and the ConfigMap with the CA of the API server.
import { type KubeObject, resources } from '../../api/index.ts'
import type { Cluster } from './cluster.ts'
import { own, source, startController } from './controller.ts'
import { isTerminating } from './objects.ts'

const rootName = 'kube-root-ca.crt'

/** `rootCertificates`: PEM of the CA that the API server's serving certificate chains to. */
export function startServiceAccounts(cluster: Cluster, rootCertificates: string): AsyncDisposable {
  return startController(cluster, {
    name: 'service-accounts',
    sources: [
      own(cluster.namespaces),
      source(
        cluster.serviceAccounts,
        ({ metadata }) => [metadata.namespace ?? ''],
        (change) => change.kind === 'deleted' && change.object.metadata.name === 'default',
      ),
      source(cluster.rootCertificates, ({ metadata }) => [metadata.namespace ?? '']),
    ],
    async work(namespace) {
      const existing = cluster.namespaces.get({ name: namespace })
      if (existing === undefined || isTerminating(existing)) return undefined
      await ensureAccount(cluster, namespace)
      await ensureRoot(cluster, namespace, rootCertificates)
      return undefined
    },
  })
}

async function ensureAccount(cluster: Cluster, namespace: string): Promise<void> {
  if (cluster.serviceAccounts.get({ namespace, name: 'default' }) !== undefined) return
  await createUnlessThere(
    cluster.client.create<KubeObject>(resources.serviceAccounts, {
      apiVersion: 'v1',
      kind: 'ServiceAccount',
      metadata: { name: 'default', namespace },
    }),
  )
}

async function ensureRoot(cluster: Cluster, namespace: string, certificates: string): Promise<void> {
  const existing = cluster.rootCertificates.get({ namespace, name: rootName })
  if (existing?.data?.['ca.crt'] === certificates) return
  const wanted = {
    ...existing,
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: existing?.metadata ?? { name: rootName, namespace },
    data: { ...existing?.data, 'ca.crt': certificates },
  }
  if (existing === undefined) await createUnlessThere(cluster.client.create(resources.configMaps, wanted))
  else await cluster.client.replace(resources.configMaps, wanted)
}

/** Created by someone else, or in a namespace that is going away: both are fine. */
async function createUnlessThere(creation: Promise<unknown>): Promise<void> {
  try {
    await creation
  } catch (error) {
    const { reason } = error as { reason?: string }
    if (reason !== 'AlreadyExists' && reason !== 'NotFound' && reason !== 'Forbidden') throw error
  }
}
