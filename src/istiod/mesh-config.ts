// The mesh config and mesh networks in force: the mounted file if there is one, else the ConfigMap of this revision, over a shared
// ConfigMap if one is named. Followed while the process runs; what cannot be read leaves the last valid one in force.
import { readFileSync, unwatchFile, watchFile } from 'node:fs'
import { isDeepStrictEqual } from 'node:util'
import { type KubeObject, resources } from '../api/index.ts'
import {
  defaultMeshConfig,
  type MeshConfig,
  type MeshNetworks,
  mergeMeshConfig,
  problemOfLayer,
  readMeshConfig,
  readMeshNetworks,
  repeatedRegistries,
} from '../config/index.ts'
import type { KubeClient } from '../kube/index.ts'
import type { Scope } from '../observability/index.ts'
import type { DiscoverySettings } from './settings.ts'

export interface MeshConfigInForce extends AsyncDisposable {
  readonly current: MeshConfig
  readonly networks: MeshNetworks
  /** Resolves when all sources have been read once and are valid: without that, nothing may be served. */
  readonly synced: Promise<void>
  /** Calls the listener when the config or the networks in force are new. Returns the function that ends the subscription. */
  subscribe(listener: () => void): () => void
}

type Settings = Pick<
  DiscoverySettings,
  'namespace' | 'revision' | 'meshConfigFile' | 'meshNetworksFile' | 'sharedMeshConfig'
>

interface ConfigMap extends KubeObject {
  data?: Record<string, string>
}

interface Source {
  readonly where: string
  /** Undefined until it is read, and when there is nothing. */
  text: string | undefined
  /** The last text that could be read. */
  valid?: string
  /** The last text that could not be read. */
  refused?: string
  readonly synced: Promise<void>
}

/** Name of the ConfigMap with the mesh config of a revision. */
export function meshConfigName({ revision }: Pick<DiscoverySettings, 'revision'>): string {
  return revision === 'default' ? 'istio' : `istio-${revision}`
}

export function followMeshConfig(client: KubeClient, settings: Settings, log: Scope): MeshConfigInForce {
  const { namespace } = settings
  const defaults = defaultMeshConfig(namespace)
  const listeners = new Set<() => void>()
  const stack = new AsyncDisposableStack()
  const valid = Promise.withResolvers<void>()
  let current = defaults
  let networks: MeshNetworks = { networks: {} }
  let allRead = false
  let isValid = false

  const ownName = meshConfigName(settings)
  const sources = [
    ...(settings.sharedMeshConfig === '' ? [] : [followConfigMap(settings.sharedMeshConfig, 'mesh', takeConfig)]),
    followFileOr(settings.meshConfigFile, () => followConfigMap(ownName, 'mesh', takeConfig), takeConfig),
  ]
  // They are not merged: the first source that has any counts.
  const networkSources = [
    followFileOr(settings.meshNetworksFile, () => followConfigMap(ownName, 'meshNetworks', takeNetworks), takeNetworks),
    ...(settings.sharedMeshConfig === ''
      ? []
      : [followConfigMap(settings.sharedMeshConfig, 'meshNetworks', takeNetworks)]),
  ]

  function takeConfig(): void {
    if (!allRead) return
    const unread = sources.filter((source) => !isReadable(source))
    if (unread.some(({ valid }) => valid === undefined) && !sources.some(saysSomething)) {
      log.error('there is no valid mesh config: nothing is served until there is', {
        where: unread.map(({ where }) => where).join(', '),
      })
      return
    }
    const layers = sources.map(({ valid = '', where }) => ({ yaml: valid, where }))
    const reading = mergeMeshConfig(layers, defaults)
    if (reading.kind === 'invalid') throw new TypeError(reading.problem)
    if (isDeepStrictEqual(current, reading.config) && isValid) return
    isValid = true
    current = reading.config
    valid.resolve()
    tell()
  }

  /** Keeps what can be read. A source that never could be read is passed over for one that says something; alone, nothing is in force. */
  function isReadable(source: Source): boolean {
    const { text = '', where } = source
    const problem = problemOfLayer({ yaml: text, where })
    if (problem === undefined) {
      source.valid = text
      return true
    }
    if (source.refused !== text) {
      source.refused = text
      const stays = source.valid === undefined ? 'it does not count' : 'the last valid one stays'
      log.error(`the mesh config is invalid; ${stays}`, { problem })
    }
    return false
  }

  function saysSomething({ valid = '', where }: Source): boolean {
    const reading = readMeshConfig(valid, defaults, where)
    return reading.kind === 'read' && reading.config !== defaults
  }

  function tell(): void {
    for (const listener of [...listeners]) listener()
  }

  function takeNetworks(): void {
    if (!allRead) return
    const [counting, ...others] = networkSources.filter(({ text = '' }) => text.trim() !== '')
    for (const { where } of others) log.warn('mesh networks are written twice; the first count', { ignored: where })
    const reading = readMeshNetworks(counting?.text ?? '', counting?.where ?? '')
    if (reading.kind === 'invalid') {
      log.error('the mesh networks are invalid; the last valid ones stay', { problem: reading.problem })
      return
    }
    networks = reading.networks
    for (const { registry, counts } of repeatedRegistries(networks)) {
      log.warn('a cluster is on two mesh networks; the first counts', { cluster: registry, network: counts })
    }
    tell()
  }

  function followFileOr(path: string, otherwise: () => Source, changed: () => void): Source {
    const text = readIfThere(path)
    if (text === undefined) return otherwise()
    const source: Source = { where: path, text, synced: Promise.resolve() }
    const reread = (): void => {
      const next = readIfThere(path)
      // A file that vanishes for a moment is being replaced.
      if (next === undefined || next === source.text) return
      source.text = next
      changed()
    }
    watchFile(path, { interval: 1_000, persistent: false }, reread)
    stack.defer(() => unwatchFile(path, reread))
    return source
  }

  function followConfigMap(name: string, key: string, changed: () => void): Source {
    const informer = stack.use(
      client.informer<ConfigMap>(resources.configMaps, { namespace, fieldSelector: `metadata.name=${name}` }),
    )
    const source: Source = { where: `ConfigMap ${namespace}/${name}: ${key}`, text: undefined, synced: informer.synced }
    stack.defer(
      informer.subscribe((changes) => {
        for (const change of changes) source.text = change.kind === 'deleted' ? '' : (change.object.data?.[key] ?? '')
        changed()
      }),
    )
    return source
  }

  async function readAll(): Promise<void> {
    await Promise.all([...sources, ...networkSources].map(({ synced }) => synced))
    allRead = true
    takeConfig()
    takeNetworks()
    await valid.promise
  }

  const synced = readAll()
  synced.catch(() => {})
  return {
    get current() {
      return current
    },
    get networks() {
      return networks
    },
    synced,
    subscribe(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  }
}

function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  }
}
