// Keeps the trust bundle, and revocations, in ConfigMaps of every namespace; or the bundle in a ClusterTrustBundle.
import { type KubeObject, resources } from '../api/index.ts'
import { crlConfigMap, type DistributedConfigMap, namespacesWithoutRoot, rootConfigMap } from '../ca/index.ts'
import type { AmbientObjects } from '../discovery/ambient/index.ts'
import { type Informer, isKubeError, type KubeClient } from '../kube/index.ts'
import type { Scope } from '../observability/index.ts'
import type { MeshAuthority } from './authority.ts'
import type { CertificateSettings } from './certificate-settings.ts'
import { pendingWork, tellingAttempt } from './pending-work.ts'
import type { SelectedNamespaces } from './selected-namespaces.ts'
import { distributeTrustBundle, trustBundleResource } from './trust-bundle.ts'

interface ConfigMap extends KubeObject {
  data?: Record<string, string>
}

type Authority = Pick<MeshAuthority, 'rootBundle' | 'crl' | 'subscribe'>
type Namespaces = Pick<Informer<AmbientObjects['namespaces']>, 'get' | 'list' | 'subscribe'>

/** Hands out the trust bundle, and revocations where there are any, until the signal aborts. */
export async function distributeRoot(
  client: KubeClient,
  namespaces: Namespaces,
  selected: SelectedNamespaces,
  authority: Authority,
  settings: CertificateSettings,
  log: Scope,
  signal: AbortSignal,
): Promise<void> {
  const distribute = (name: string, wanted: () => DistributedConfigMap | undefined) =>
    distributeConfigMap({ client, namespaces, selected, authority, name, wanted, log }, signal)
  const root = () =>
    authority.rootBundle === '' ? undefined : rootConfigMap(authority.rootBundle, settings.rootConfigMap)
  const crl = () => (authority.crl === undefined ? undefined : crlConfigMap(authority.crl, settings.crlConfigMap))
  const bundles = settings.usesTrustBundles ? await trustBundleResource(client) : undefined
  if (settings.usesTrustBundles && bundles === undefined) {
    log.warn('the API server does not serve ClusterTrustBundles: the trust bundle goes into ConfigMaps')
  }
  await Promise.all([
    bundles === undefined
      ? distribute(settings.rootConfigMap, root)
      : distributeTrustBundle(client, bundles, authority, log, signal),
    ...(settings.distributesCrl ? [distribute(settings.crlConfigMap, crl)] : []),
  ])
}

interface Distribution {
  readonly client: KubeClient
  readonly namespaces: Namespaces
  readonly selected: SelectedNamespaces
  readonly authority: Pick<Authority, 'subscribe'>
  readonly name: string
  /** Undefined while there is nothing to hand out. */
  readonly wanted: () => DistributedConfigMap | undefined
  readonly log: Scope
}

/** Keeps one ConfigMap in every namespace. Other keys and labels of an existing one are kept. */
async function distributeConfigMap(
  { client, namespaces, selected, authority, name: configMapName, wanted: contentOf, log }: Distribution,
  signal: AbortSignal,
): Promise<void> {
  await using configMaps = client.informer<ConfigMap>(resources.configMaps, {
    fieldSelector: `metadata.name=${configMapName}`,
  })
  const work = pendingWork(reconcile, (namespace, error, attempt) => {
    const level = attempt === tellingAttempt ? 'error' : 'debug'
    log[level]('a ConfigMap could not be written', { namespace, name: configMapName, attempt, reason: textOf(error) })
  })

  async function reconcile(name: string): Promise<void> {
    const namespace = namespaces.get({ name })
    const wanted = contentOf()
    if (wanted === undefined || namespace === undefined || namespacesWithoutRoot.has(name)) return
    if (!selected.has(namespace)) return
    if (namespace.metadata.deletionTimestamp !== undefined || namespace.status?.phase === 'Terminating') return
    const present = configMaps.get({ namespace: name, name: configMapName })
    if (present !== undefined && isCurrent(present, wanted)) return
    try {
      await write(name, wanted, present !== undefined)
      log.debug('wrote a ConfigMap', { namespace: name, name: configMapName })
    } catch (error) {
      // The namespace is gone.
      if (isKubeError(error, 404)) return
      throw error
    }
  }

  async function write(namespace: string, wanted: DistributedConfigMap, exists: boolean): Promise<void> {
    const patch = { kind: 'merge', body: wanted } as const
    const key = { namespace, name: configMapName }
    if (exists) {
      await client.patch(resources.configMaps, key, patch)
      return
    }
    try {
      await client.create<ConfigMap>(resources.configMaps, {
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { ...key, labels: { ...wanted.metadata.labels } },
        data: { ...wanted.data },
      })
    } catch (error) {
      if (!isKubeError(error, 409)) throw error
      await client.patch(resources.configMaps, key, patch)
    }
  }

  const addAll = (): void => {
    for (const { metadata } of namespaces.list()) work.add(metadata.name)
  }
  await Promise.race([configMaps.synced, once(signal)])
  const ends = [
    namespaces.subscribe((changes) => {
      for (const { object } of changes) work.add(object.metadata.name)
    }),
    configMaps.subscribe((changes) => {
      for (const { object } of changes) work.add(object.metadata.namespace ?? '')
    }),
    authority.subscribe(addAll),
    selected.subscribe(addAll),
  ]
  try {
    await work.run(signal)
  } finally {
    for (const end of ends) end()
  }
}

function isCurrent(present: ConfigMap, wanted: DistributedConfigMap): boolean {
  return (
    Object.entries(wanted.data).every(([key, value]) => present.data?.[key] === value) &&
    Object.entries(wanted.metadata.labels).every(([key, value]) => present.metadata.labels?.[key] === value)
  )
}

function once(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    signal.addEventListener('abort', () => resolve(), { once: true })
  })
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
