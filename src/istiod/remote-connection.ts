// One connection to a remote cluster, with what is read through it.
import { type KubeObject, type Resource, resources } from '../api/index.ts'
import { createPodIndex, type PodIndex } from '../ca/index.ts'
import { type FindProblems, followInformer, type ProblemLog, readTrustDomain } from '../config/index.ts'
import {
  type AmbientInputs,
  type AmbientKind,
  type AmbientObjects,
  ambientKinds,
  createKeptFields,
} from '../discovery/ambient/index.ts'
import { type Informer, isKubeError, type KubeClient } from '../kube/index.ts'
import type { Scope } from '../observability/index.ts'
import { followOptions, type Inbound, indexPods } from './cluster.ts'
import { ignoring } from './ignored-kinds.ts'
import { watchingNamespace } from './watched-namespace.ts'

export interface RemoteReading {
  /** The system namespace, which is the same in all clusters. */
  readonly systemNamespace: string
  /** The only namespace whose objects are read; empty: all are. */
  readonly watchNamespace: string
  /** Kinds whose objects are not read. */
  readonly ignoredKinds: readonly Resource[]
  /** Name of the ConfigMap with a cluster's own mesh config. */
  readonly meshConfigName: string
  /** The mesh is made of all clusters; else the others only vouch for the tokens and pods of their own. */
  readonly isMultiNetwork: boolean
  readonly inputs: AmbientInputs
  readonly problems: FindProblems
  readonly problemLog: ProblemLog
  readonly inbound: Inbound
  readonly log: Scope
}

export interface RemoteConnection {
  readonly client: KubeClient
  readonly pods: PodIndex
  readonly namespaces: Informer<AmbientObjects['namespaces']>
  readonly synced: Promise<void>
  /** Makes the mesh see what this connection reads, in one step. */
  attach(): void
  close(): Promise<void>
}

interface ConfigMap extends KubeObject {
  data?: Record<string, string>
}

/** Starts reading at once. The connection owns its client. */
export function openRemoteConnection(clusterId: string, client: KubeClient, options: RemoteReading): RemoteConnection {
  const { inputs } = options
  const pods = createPodIndex()
  const stops: (() => void)[] = []
  const attachments: (() => void)[] = []
  const kept = createKeptFields()
  const watching = ignoring(watchingNamespace(client, options.watchNamespace), options.ignoredKinds)

  function read<K extends AmbientKind>(kind: K): Informer<AmbientObjects[K]> {
    const keep = kept[kind]
    const informer = watching.informer<AmbientObjects[K]>(resources[kind], keep === undefined ? {} : { keep })
    attachments.push(() => follow(kind, informer))
    return informer
  }

  function follow<K extends AmbientKind>(kind: K, informer: Informer<AmbientObjects[K]>): void {
    inputs.feed(clusterId, kind).replace([])
    const followed = followInformer<AmbientObjects[K]>({ ...followOptions(kind, { ...options, clusterId }), informer })
    stops.push(() => followed.stop())
  }

  const others = (Object.keys(ambientKinds) as AmbientKind[])
    .filter((kind) => kind !== 'pods' && kind !== 'namespaces')
    .filter((kind) => options.isMultiNetwork && ambientKinds[kind] === 'every-cluster')
  const namespaces = read('namespaces')
  const informers = others.map((kind) => read(kind))
  const podInformer = read('pods')
  stops.push(indexPods(podInformer, pods))

  const configKey = { namespace: options.systemNamespace, name: options.meshConfigName }
  let meshConfigs: Informer<ConfigMap> | undefined
  attachments.push(() => {
    const take = (): void => {
      const domain = readTrustDomain(meshConfigs?.get(configKey)?.data?.mesh)
      if (domain === undefined) inputs.trustDomains.delete(clusterId)
      else inputs.trustDomains.set(clusterId, domain)
    }
    take()
    if (meshConfigs !== undefined) stops.push(meshConfigs.subscribe(take))
  })

  /** A cluster need not let us read its mesh config: then it counts as one that says nothing. */
  async function readMeshConfig(): Promise<void> {
    try {
      await client.get(resources.configMaps, configKey)
    } catch (error) {
      if (!isKubeError(error, 403)) throw error
      options.log.warn('the mesh config of a remote cluster may not be read; its trust domain counts as ours', {
        cluster: clusterId,
        reason: error.message,
      })
      return
    }
    meshConfigs = client.informer<ConfigMap>(resources.configMaps, {
      namespace: configKey.namespace,
      fieldSelector: `metadata.name=${configKey.name}`,
    })
    await meshConfigs.synced
  }

  async function readAll(): Promise<void> {
    await podInformer.synced
    // Who only vouches for tokens and pods need not show more.
    if (!options.isMultiNetwork) return
    await Promise.all([namespaces, ...informers].map((informer) => informer.synced))
    await readMeshConfig()
  }

  const synced = readAll()
  synced.catch(() => {})
  return {
    client,
    pods,
    namespaces,
    synced,
    attach() {
      if (options.isMultiNetwork) for (const attachOne of attachments) attachOne()
    },
    async close() {
      for (const stop of stops) stop()
      await client.close()
    },
  }
}
