// The mesh config in force: the mounted file if there is one, else the ConfigMap of this revision. Followed while the process runs.
import { readFileSync, unwatchFile, watchFile } from 'node:fs'
import { type KubeObject, resources } from '../api/index.ts'
import { defaultMeshConfig, type MeshConfig, readMeshConfig } from '../config/index.ts'
import type { KubeClient } from '../kube/index.ts'
import type { Scope } from '../observability/index.ts'
import type { DiscoverySettings } from './settings.ts'

export interface MeshConfigInForce extends AsyncDisposable {
  readonly current: MeshConfig
  /** Resolves when the source has been read once. */
  readonly synced: Promise<void>
  /** Calls the listener with each new config. Returns the function that ends the subscription. */
  subscribe(listener: (config: MeshConfig) => void): () => void
}

interface ConfigMap extends KubeObject {
  data?: Record<string, string>
}

export function followMeshConfig(client: KubeClient, settings: DiscoverySettings, log: Scope): MeshConfigInForce {
  const defaults = defaultMeshConfig(settings.namespace)
  const listeners = new Set<(config: MeshConfig) => void>()
  const stack = new AsyncDisposableStack()
  let current = defaults

  function take(yaml: string, where: string): void {
    const reading = readMeshConfig(yaml, defaults, where)
    if (reading.kind === 'invalid') {
      log.error('the mesh config is invalid; the last valid one stays', { problem: reading.problem })
      return
    }
    current = reading.config
    for (const listener of [...listeners]) listener(current)
  }

  function followFile(path: string): Promise<void> {
    const read = (): void => {
      const text = readIfThere(path)
      if (text !== undefined) take(text, path)
    }
    read()
    watchFile(path, { interval: 1_000, persistent: false }, read)
    stack.defer(() => unwatchFile(path, read))
    return Promise.resolve()
  }

  function followConfigMap(): Promise<void> {
    const name = settings.revision === 'default' ? 'istio' : `istio-${settings.revision}`
    const { namespace } = settings
    const informer = stack.use(
      client.informer<ConfigMap>(resources.configMaps, { namespace, fieldSelector: `metadata.name=${name}` }),
    )
    informer.subscribe((changes) => {
      for (const change of changes) {
        const yaml = change.kind === 'deleted' ? '' : (change.object.data?.mesh ?? '')
        take(yaml, `ConfigMap ${namespace}/${name}`)
      }
    })
    return informer.synced
  }

  const isMounted = readIfThere(settings.meshConfigFile) !== undefined
  const synced = isMounted ? followFile(settings.meshConfigFile) : followConfigMap()
  return {
    get current() {
      return current
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
