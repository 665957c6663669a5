// The parts of MeshConfig and ProxyConfig that the node proxy reads, merged from the mesh file and the environment.
import { loadYaml } from '../yaml.ts'
import { ConfigError } from './errors.ts'
import type { Environment } from './variables.ts'
import { mostWorkers } from './workers.ts'

export interface ProxyConfig {
  readonly discoveryAddress?: string
  readonly proxyAdminPort?: number
  readonly statsPort?: number
  readonly concurrency?: number
  /** Keys without the prefix `ISTIO_META_`. */
  readonly proxyMetadata: Readonly<Record<string, string>>
}

const metaPrefix = 'ISTIO_META_'

/** The mesh file's `defaultConfig`, overridden by PROXY_CONFIG, overridden by ISTIO_META_*. */
export function mergeProxyConfig(
  env: Environment,
  meshFile: { readonly path: string; readonly text: string } | undefined,
): ProxyConfig {
  const ofFile =
    meshFile === undefined
      ? undefined
      : reading(`failed parsing mesh config file ${meshFile.path}`, () => {
          const mesh = readObject(loadYaml().parse(meshFile.text) ?? {}, 'the file')
          return readProxyConfig(mesh.defaultConfig ?? {}, 'defaultConfig')
        })
  const text = env.PROXY_CONFIG
  const ofEnv =
    text === undefined || text === ''
      ? undefined
      : reading('failed parsing proxy config env', () => readProxyConfig(loadYaml().parse(text) ?? {}, 'PROXY_CONFIG'))
  const ofMeta = Object.entries(env).flatMap(([name, value]) =>
    name.startsWith(metaPrefix) && value !== undefined ? [[name.slice(metaPrefix.length), value] as const] : [],
  )
  return {
    ...ofFile,
    ...ofEnv,
    proxyMetadata: { ...ofFile?.proxyMetadata, ...ofEnv?.proxyMetadata, ...Object.fromEntries(ofMeta) },
  }
}

function readProxyConfig(value: unknown, what: string): ProxyConfig {
  const fields = readObject(value, what)
  const { discoveryAddress } = fields
  if (discoveryAddress !== undefined && typeof discoveryAddress !== 'string') {
    throw new ConfigError(`discoveryAddress: expected a text, got ${JSON.stringify(discoveryAddress)}`)
  }
  const number = (key: string, max: number): number | undefined => {
    const found = fields[key]
    if (found === undefined || found === null) return undefined
    if (typeof found === 'number' && Number.isInteger(found) && found >= 0 && found <= max) return found
    throw new ConfigError(`${key}: expected a whole number up to ${max}, got ${JSON.stringify(found)}`)
  }
  const numbers = {
    proxyAdminPort: number('proxyAdminPort', 65535),
    statsPort: number('statsPort', 65535),
    concurrency: number('concurrency', mostWorkers),
  }
  return {
    ...(discoveryAddress === undefined ? {} : { discoveryAddress }),
    ...Object.fromEntries(Object.entries(numbers).filter(([, found]) => found !== undefined)),
    proxyMetadata: readMetadata(fields.proxyMetadata ?? {}),
  }
}

function readMetadata(value: unknown): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(readObject(value, 'proxyMetadata')).map(([key, one]) => {
      if (typeof one === 'object') throw new ConfigError(`proxyMetadata.${key}: expected a text`)
      return [key.startsWith(metaPrefix) ? key.slice(metaPrefix.length) : key, String(one)] as const
    }),
  )
}

function readObject(value: unknown, what: string): Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new ConfigError(`${what}: expected an object`)
  }
  return value as Readonly<Record<string, unknown>>
}

function reading<T>(what: string, read: () => T): T {
  try {
    return read()
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    throw new ConfigError(`${what}: ${why}`, { cause: error })
  }
}
