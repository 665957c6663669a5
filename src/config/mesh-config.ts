// Mesh config: read from a file or a ConfigMap, kept when a later version can't be read.
import { parse } from 'yaml'

export interface MeshConfig {
  readonly trustDomain: string
  readonly trustDomainAliases: readonly string[]
  readonly rootNamespace: string
  /** `host:port` of the control plane. */
  readonly discoveryAddress: string
  /** Everything as written, over the defaults. */
  readonly fields: Readonly<Record<string, unknown>>
}

export type MeshConfigReading =
  | { readonly kind: 'read'; readonly config: MeshConfig }
  | { readonly kind: 'invalid'; readonly problem: string }

/** Defaults depend on where the control plane itself runs. */
export function defaultMeshConfig(systemNamespace: string): MeshConfig {
  return {
    trustDomain: 'cluster.local',
    trustDomainAliases: [],
    rootNamespace: systemNamespace,
    discoveryAddress: `istiod.${systemNamespace}.svc:15012`,
    fields: {},
  }
}

/** Reads the YAML of a mesh config over the defaults. `where` names the source in the problem's text. */
export function readMeshConfig(yaml: string, defaults: MeshConfig, where: string): MeshConfigReading {
  let value: unknown
  try {
    value = parse(yaml)
  } catch (error) {
    return { kind: 'invalid', problem: `${where}: ${error instanceof Error ? error.message : String(error)}` }
  }
  if (value === null || value === undefined) return { kind: 'read', config: defaults }
  if (!isRecord(value)) return { kind: 'invalid', problem: `${where}: expected a mapping of mesh config fields` }
  const proxyDefaults = value.defaultConfig ?? {}
  if (!isRecord(proxyDefaults)) return { kind: 'invalid', problem: `${where}: defaultConfig: expected a mapping` }
  const problems: string[] = []
  const text = (of: Readonly<Record<string, unknown>>, name: string, fallback: string): string => {
    const field = of[name]
    if (field === undefined || field === null || field === '') return fallback
    if (typeof field === 'string') return field
    problems.push(`${where}: ${name}: expected text`)
    return fallback
  }
  const aliases = value.trustDomainAliases ?? []
  if (!Array.isArray(aliases) || !aliases.every((alias) => typeof alias === 'string')) {
    problems.push(`${where}: trustDomainAliases: expected a list of text`)
  }
  const config: MeshConfig = {
    trustDomain: text(value, 'trustDomain', defaults.trustDomain),
    trustDomainAliases: Array.isArray(aliases) ? aliases.map(String) : [],
    rootNamespace: text(value, 'rootNamespace', defaults.rootNamespace),
    discoveryAddress: text(proxyDefaults, 'discoveryAddress', defaults.discoveryAddress),
    fields: value,
  }
  return problems.length > 0 ? { kind: 'invalid', problem: problems.join('; ') } : { kind: 'read', config }
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
