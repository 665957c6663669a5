// Where the mesh's configuration comes from: the cluster, a directory, other control planes, or several of them; and other ones when
// mesh config says so.
import { readFileSync } from 'node:fs'
import { rootCertificates } from 'node:tls'
import { isDeepStrictEqual } from 'node:util'
import { type KubeObject, type Resource, resources } from '../api/index.ts'
import {
  aggregateSources,
  type ConfigSource,
  type ConfigSourceSpec,
  createSwitchingSource,
  type FileSource,
  openFileSource,
  openXdsSource,
} from '../config/index.ts'
import type { KubeClient } from '../kube/index.ts'
import type { Scope } from '../observability/index.ts'
import type { MeshConfigInForce } from './mesh-config.ts'
import { type DiscoverySettings, SettingError } from './settings.ts'

export interface Configuration extends AsyncDisposable {
  readonly source: ConfigSource
  /** `file:line` of a field, for objects from files. */
  whereIs(object: KubeObject, field: string): string | undefined
}

export interface ConfigurationOptions {
  readonly client: KubeClient
  readonly settings: Pick<DiscoverySettings, 'configDir' | 'namespace' | 'podName' | 'clusterId'>
  readonly mesh: Pick<MeshConfigInForce, 'current' | 'subscribe'>
  /** What is read from sources that are no API server. */
  readonly kinds: readonly Resource[]
  readonly log: Scope
}

interface Secret extends KubeObject {
  data?: Record<string, string>
}

/** Sources that are open together. */
interface Opened extends AsyncDisposable {
  readonly source: ConfigSource
  readonly files: readonly FileSource[]
}

const retryMs = 10_000
const tokenFile = './var/run/secrets/tokens/istio-token'

/**
 * What mesh config names, else the directory of --configDir, else the cluster. Throws a SettingError for what cannot be opened at the
 * start; later, what cannot be opened leaves the sources in force.
 */
export function openConfiguration(options: ConfigurationOptions): Configuration {
  const { mesh, log } = options
  let specs = mesh.current.configSources
  let opened = openAll(options, specs)
  /** Opened, but not read yet. */
  let next: Opened | undefined
  let retry: NodeJS.Timeout | undefined
  let closed = false
  const source = createSwitchingSource(opened.source)
  const closing = new Set<Promise<void>>()

  function close(sources: Opened): void {
    const ending = Promise.resolve(sources[Symbol.asyncDispose]()).catch((error: unknown) => {
      log.warn('a configuration source did not close', { reason: String(error) })
    })
    closing.add(ending)
    void ending.finally(() => closing.delete(ending))
  }

  function follow(): void {
    const wanted = mesh.current.configSources
    if (isDeepStrictEqual(wanted, specs)) return
    clearTimeout(retry)
    try {
      const opening = openAll(options, wanted)
      specs = wanted
      if (next !== undefined) close(next)
      next = opening
      log.info('configuration will be taken from other sources once they are read', { sources: addressesOf(wanted) })
      source.switchTo(opening.source).then(
        (isTaken) => {
          if (isTaken && next === opening && !closed) take(opening)
        },
        // It was closed meanwhile.
        () => {},
      )
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      log.error('the configuration sources of mesh config cannot be opened; those in force stay', { reason })
      retry = setTimeout(follow, retryMs)
    }
  }

  function take(opening: Opened): void {
    close(opened)
    opened = opening
    next = undefined
    log.info('configuration is taken from other sources', { sources: addressesOf(specs) })
  }

  const end = mesh.subscribe(follow)
  return {
    source,
    whereIs(object, field) {
      for (const files of [...opened.files, ...(next?.files ?? [])]) {
        const where = files.whereIs(object, field)
        if (where !== undefined) return where
      }
      return undefined
    },
    async [Symbol.asyncDispose]() {
      closed = true
      end()
      clearTimeout(retry)
      for (const one of [opened, next]) if (one !== undefined) close(one)
      await Promise.all(closing)
    },
  }
}

function addressesOf(specs: readonly ConfigSourceSpec[]): string {
  return specs.length === 0 ? 'as without configSources' : specs.map(({ address }) => address).join(' ')
}

function openAll(options: ConfigurationOptions, specs: readonly ConfigSourceSpec[]): Opened {
  const { client, settings, kinds, log } = options
  const stack = new AsyncDisposableStack()
  const files: FileSource[] = []

  function openDirectory(dir: string): ConfigSource {
    try {
      const source = stack.use(openFileSource({ dir, kinds, log }))
      files.push(source)
      log.info('configuration is read from files', { dir })
      return source
    } catch (cause) {
      void stack.disposeAsync()
      throw new SettingError(`the configuration directory ${dir} cannot be read`, { cause })
    }
  }

  function openOther({ address, tls }: ConfigSourceSpec): ConfigSource {
    if (address.startsWith('fs://')) return openDirectory(address.slice('fs://'.length))
    if (address.startsWith('k8s://')) return client
    log.info('configuration is read from another control plane', { address })
    return stack.use(
      openXdsSource({
        address: address.slice('xds://'.length),
        transport:
          tls?.isPlaintext === true
            ? { kind: 'plaintext' }
            : {
                kind: 'tls',
                roots: () => rootsOf(tls),
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

  async function rootsOf(tls: ConfigSourceSpec['tls']): Promise<string> {
    if (tls?.caCertificates !== undefined) return readFileSync(tls.caCertificates, 'utf8')
    if (tls?.credentialName === undefined) return rootCertificates.join('\n')
    const key = { namespace: settings.namespace, name: tls.credentialName }
    const { data } = (await client.get<Secret>(resources.secrets, key)) ?? {}
    const encoded = data?.cacert ?? data?.['ca.crt']
    if (encoded === undefined) throw new Error(`Secret ${key.namespace}/${key.name}: expected the key cacert or ca.crt`)
    return Buffer.from(encoded, 'base64').toString('utf8')
  }

  const named = specs.map(openOther)
  const fallback = (): ConfigSource => (settings.configDir === '' ? client : openDirectory(settings.configDir))
  return {
    source: aggregateSources(named.length > 0 ? named : [fallback()]),
    files,
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
