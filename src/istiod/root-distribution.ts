// Keeps the trust bundle in a ConfigMap of every namespace.
import { type KubeObject, resources } from '../api/index.ts'
import { type CertificateAuthority, namespacesWithoutRoot, rootConfigMap, rootConfigMapName } from '../ca/index.ts'
import type { AmbientObjects } from '../discovery/ambient/index.ts'
import { type Informer, isKubeError, type KubeClient } from '../kube/index.ts'
import type { Scope } from '../observability/index.ts'
import { pendingWork } from './pending-work.ts'

interface ConfigMap extends KubeObject {
  data?: Record<string, string>
}

/** Works until the signal aborts. Other keys and labels of an existing ConfigMap are kept. */
export async function distributeRoot(
  client: KubeClient,
  namespaces: Informer<AmbientObjects['namespaces']>,
  authority: Pick<CertificateAuthority, 'rootBundle' | 'subscribe'>,
  log: Scope,
  signal: AbortSignal,
): Promise<void> {
  await using configMaps = client.informer<ConfigMap>(resources.configMaps, {
    fieldSelector: `metadata.name=${rootConfigMapName}`,
  })
  const work = pendingWork(reconcile, (namespace, error, attempt) => {
    const level = attempt === 5 ? 'error' : 'debug'
    log[level]('the trust bundle could not be written', { namespace, attempt, reason: textOf(error) })
  })

  async function reconcile(name: string): Promise<void> {
    const namespace = namespaces.get({ name })
    if (namespace === undefined || namespacesWithoutRoot.has(name)) return
    if (namespace.metadata.deletionTimestamp !== undefined || namespace.status?.phase === 'Terminating') return
    const wanted = rootConfigMap(authority.rootBundle)
    const present = configMaps.get({ namespace: name, name: rootConfigMapName })
    if (present !== undefined && isCurrent(present, wanted)) return
    try {
      await write(name, wanted, present !== undefined)
      log.debug('wrote the trust bundle', { namespace: name })
    } catch (error) {
      // The namespace goes away, or we are told to keep out.
      if (isKubeError(error, 403) || isKubeError(error, 404)) return
      throw error
    }
  }

  async function write(namespace: string, wanted: ReturnType<typeof rootConfigMap>, exists: boolean): Promise<void> {
    const patch = { kind: 'merge', body: wanted } as const
    const key = { namespace, name: rootConfigMapName }
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

  await Promise.race([configMaps.synced, once(signal)])
  const ends = [
    namespaces.subscribe((changes) => {
      for (const { object } of changes) work.add(object.metadata.name)
    }),
    configMaps.subscribe((changes) => {
      for (const { object } of changes) work.add(object.metadata.namespace ?? '')
    }),
    authority.subscribe(() => {
      for (const { metadata } of namespaces.list()) work.add(metadata.name)
    }),
  ]
  try {
    await work.run(signal)
  } finally {
    for (const end of ends) end()
  }
}

function isCurrent(present: ConfigMap, wanted: ReturnType<typeof rootConfigMap>): boolean {
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
