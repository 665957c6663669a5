// The config maps, secrets and trust bundles that pods of this node refer to, watched while a pod needs them.
import { type KubeObject, type Resource, resources } from '../../api/index.ts'
import type { Informer, KubeClient, ListOptions } from '../../kube/index.ts'
import type { ClusterTrustBundle, ConfigMap, PodSpec, Secret } from './types.ts'

interface Entry {
  readonly informer: Informer<KubeObject>
  readonly users: Map<string, () => void>
}

export interface ObjectReferences {
  readonly configMaps: ReadonlySet<string>
  readonly secrets: ReadonlySet<string>
  /** Some trust bundle, which may be named by its signer only. */
  readonly trustBundles: boolean
}

/** The names a pod's volumes and variables refer to. */
export function referencesOf(spec: PodSpec): ObjectReferences {
  const configMaps = new Set<string | undefined>()
  const secrets = new Set<string | undefined>()
  let trustBundles = false
  for (const volume of spec.volumes ?? []) {
    configMaps.add(volume.configMap?.name)
    secrets.add(volume.secret?.secretName)
    for (const source of volume.projected?.sources ?? []) {
      configMaps.add(source.configMap?.name)
      secrets.add(source.secret?.name)
      trustBundles ||= source.clusterTrustBundle !== undefined
    }
  }
  for (const container of [...(spec.initContainers ?? []), ...spec.containers]) {
    for (const from of container.envFrom ?? []) {
      configMaps.add(from.configMapRef?.name)
      secrets.add(from.secretRef?.name)
    }
    for (const { valueFrom } of container.env ?? []) {
      configMaps.add(valueFrom?.configMapKeyRef?.name)
      secrets.add(valueFrom?.secretKeyRef?.name)
    }
  }
  const named = (names: Set<string | undefined>) => new Set([...names].filter((name) => name !== undefined))
  return { configMaps: named(configMaps), secrets: named(secrets), trustBundles }
}

export class ObjectCache implements AsyncDisposable {
  readonly #client: KubeClient
  readonly #entries = new Map<string, Entry>()

  constructor(client: KubeClient) {
    this.#client = client
  }

  /** Watches what the user (a pod's UID) refers to, calls `changed` on each change, and resolves when all is known once. */
  async use(user: string, namespace: string, spec: PodSpec, changed: () => void): Promise<void> {
    const { configMaps, secrets, trustBundles } = referencesOf(spec)
    const waits: Promise<void>[] = []
    const add = (resource: Resource, key: string, selection: ListOptions) => {
      let entry = this.#entries.get(key)
      if (entry === undefined) {
        const informer = this.#client.informer(resource, selection)
        const created: Entry = { informer, users: new Map() }
        informer.subscribe(() => {
          for (const notify of created.users.values()) notify()
        })
        this.#entries.set(key, created)
        entry = created
      }
      entry.users.set(user, changed)
      waits.push(entry.informer.synced)
    }
    const addNamed = (resource: Resource, name: string) =>
      add(resource, keyOf(resource, namespace, name), { namespace, fieldSelector: `metadata.name=${name}` })
    for (const name of configMaps) addNamed(resources.configMaps, name)
    for (const name of secrets) addNamed(resources.secrets, name)
    if (trustBundles) add(resources.clusterTrustBundles, allTrustBundles, {})
    await Promise.all(waits)
  }

  async release(user: string): Promise<void> {
    const unused: Entry[] = []
    for (const [key, entry] of this.#entries) {
      if (!entry.users.delete(user) || entry.users.size > 0) continue
      this.#entries.delete(key)
      unused.push(entry)
    }
    await Promise.all(unused.map((entry) => entry.informer[Symbol.asyncDispose]()))
  }

  configMap(namespace: string, name: string): ConfigMap | undefined {
    return this.#get(resources.configMaps, namespace, name) as ConfigMap | undefined
  }

  secret(namespace: string, name: string): Secret | undefined {
    return this.#get(resources.secrets, namespace, name) as Secret | undefined
  }

  trustBundles(): readonly ClusterTrustBundle[] {
    return (this.#entries.get(allTrustBundles)?.informer.list() ?? []) as readonly ClusterTrustBundle[]
  }

  #get(resource: Resource, namespace: string, name: string): KubeObject | undefined {
    return this.#entries.get(keyOf(resource, namespace, name))?.informer.get({ namespace, name })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const entries = [...this.#entries.values()]
    this.#entries.clear()
    await Promise.all(entries.map((entry) => entry.informer[Symbol.asyncDispose]()))
  }
}

const allTrustBundles = resources.clusterTrustBundles.kind

function keyOf(resource: Resource, namespace: string, name: string): string {
  return `${resource.kind}/${namespace}/${name}`
}
