// Where the mesh's configuration comes from: the cluster, a directory, other control planes, or several of them.
import { readFileSync } from 'node:fs'
import { rootCertificates } from 'node:tls'
import { type KubeObject, resources } from '../api/index.ts'
import {
  aggregateSources,
  type ConfigSource,
  type FileSource,
  type MeshConfig,
  openFileSource,
  openXdsSource,
} from '../config/index.ts'
import type { KubeClient } from '../kube/index.ts'
import type { Scope } from '../observability/index.ts'
import { configurationKinds } from './cluster.ts'
import { type DiscoverySettings, SettingError } from './settings.ts'

export interface Configuration extends AsyncDisposable {
  readonly source: ConfigSource
  /** `file:line` of a field, for objects from files. */
  whereIs(object: KubeObject, field: string): string | undefined
}

const tokenFile = './var/run/secrets/tokens/istio-token'

/** What mesh config names, else the directory of --configDir, else the cluster. Throws a SettingError for what cannot be opened. */
export function openConfiguration(
  client: KubeClient,
  settings: Pick<DiscoverySettings, 'configDir' | 'namespace' | 'podName' | 'clusterId'>,
  mesh: MeshConfig,
  log: Scope,
): Configuration {
  const stack = new AsyncDisposableStack()
  const kinds = configurationKinds.map((kind) => resources[kind])
  const files: FileSource[] = []

  function openDirectory(dir: string): ConfigSource {
    try {
      const source = stack.use(openFileSource({ dir, kinds, log }))
      files.push(source)
      log.info('configuration is read from files', { dir })
      return source
    } catch (cause) {
      throw new SettingError(`the configuration directory ${dir} cannot be read`, { cause })
    }
  }

  function openOther({ address, tls }: MeshConfig['configSources'][number]): ConfigSource {
    if (address.startsWith('fs://')) return openDirectory(address.slice('fs://'.length))
    if (address.startsWith('k8s://')) return client
    log.info('configuration is read from another control plane', { address })
    const roots = tls?.caCertificates
    return stack.use(
      openXdsSource({
        address: address.slice('xds://'.length),
        transport:
          tls?.isPlaintext === true
            ? { kind: 'plaintext' }
            : {
                kind: 'tls',
                roots: () => (roots === undefined ? rootCertificates.join('\n') : readFileSync(roots, 'utf8')),
                ...(tls?.sni === undefined ? {} : { serverName: tls.sni }),
              },
        headers: () => ({ ...authorization(), clusterid: settings.clusterId }),
        nodeId: `sidecar~127.0.0.1~${settings.podName}.${settings.namespace}~${settings.namespace}.svc.cluster.local`,
        namespace: settings.namespace,
        kinds,
        log,
      }),
    )
  }

  const named = mesh.configSources.map(openOther)
  const fallback = (): ConfigSource => (settings.configDir === '' ? client : openDirectory(settings.configDir))
  return {
    source: aggregateSources(named.length > 0 ? named : [fallback()]),
    whereIs(object, field) {
      for (const source of files) {
        const where = source.whereIs(object, field)
        if (where !== undefined) return where
      }
      return undefined
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  }
}

/** Our own token, if this pod has one. */
function authorization(): Record<string, string> {
  try {
    return { authorization: `Bearer ${readFileSync(tokenFile, 'utf8').trim()}` }
  } catch {
    return {}
  }
}
