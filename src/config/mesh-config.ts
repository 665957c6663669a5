// Mesh config: read from files and ConfigMaps in layers, kept when a later version can't be read.
import { parse } from 'yaml'

type Fields = Readonly<Record<string, unknown>>

export interface MeshConfig {
  readonly trustDomain: string
  readonly trustDomainAliases: readonly string[]
  readonly rootNamespace: string
  /** `host:port` of the control plane. */
  readonly discoveryAddress: string
  readonly configSources: readonly ConfigSourceSpec[]
  /** Everything as written, over the defaults. */
  readonly fields: Fields
}

/** One of `configSources`. */
export interface ConfigSourceSpec {
  /** `fs:///dir`, `xds://host:port` or `k8s://`. */
  readonly address: string
  readonly tls?: {
    /** PEM file of the roots. */
    readonly caCertificates?: string
    /** A Secret of the system namespace that holds the roots. */
    readonly credentialName?: string
    readonly sni?: string
    readonly isPlaintext: boolean
  }
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
    configSources: [],
    fields: {},
  }
}

/** Reads the YAML of one mesh config over the defaults. `where` names the source in the problem's text. */
export function readMeshConfig(yaml: string, defaults: MeshConfig, where: string): MeshConfigReading {
  return mergeMeshConfig([{ yaml, where }], defaults)
}

/** The trust domain in the YAML of another cluster's mesh config; undefined where there is none to be read. */
export function readTrustDomain(yaml: string | undefined): string | undefined {
  if (yaml === undefined) return undefined
  const reading = readMeshConfig(yaml, defaultMeshConfig(''), '')
  return reading.kind === 'read' ? reading.config.trustDomain : undefined
}

export interface MeshConfigLayer {
  readonly yaml: string
  readonly where: string
}

/**
 * Reads layers, later ones over earlier ones: a field replaces the whole field, but defaultConfig and defaultProviders merge field by
 * field (and proxyMetadata by key), extensionProviders by name, and trustDomainAliases are united.
 */
export function mergeMeshConfig(layers: readonly MeshConfigLayer[], defaults: MeshConfig): MeshConfigReading {
  let fields: Fields = {}
  for (const layer of layers) {
    const reading = readLayer(layer)
    if (typeof reading === 'string') return { kind: 'invalid', problem: reading }
    fields = layered(fields, reading)
  }
  if (Object.keys(fields).length === 0) return { kind: 'read', config: defaults }
  const proxyDefaults = isRecord(fields.defaultConfig) ? fields.defaultConfig : {}
  const text = (of: Fields, name: string, fallback: string): string =>
    typeof of[name] === 'string' && of[name] !== '' ? of[name] : fallback
  return {
    kind: 'read',
    config: {
      trustDomain: text(fields, 'trustDomain', defaults.trustDomain),
      trustDomainAliases: Array.isArray(fields.trustDomainAliases) ? fields.trustDomainAliases.map(String) : [],
      rootNamespace: text(fields, 'rootNamespace', defaults.rootNamespace),
      discoveryAddress: text(proxyDefaults, 'discoveryAddress', defaults.discoveryAddress),
      configSources: Array.isArray(fields.configSources) ? fields.configSources.map(sourceOf) : [],
      fields,
    },
  }
}

/** What is wrong with a layer; undefined when it can be read. */
export function problemOfLayer(layer: MeshConfigLayer): string | undefined {
  const reading = readLayer(layer)
  return typeof reading === 'string' ? reading : undefined
}

/** The fields, or what is wrong with them. */
function readLayer({ yaml, where }: MeshConfigLayer): Fields | string {
  const reading = fieldsOf(yaml, where)
  if (typeof reading === 'string') return reading
  const problems = problemsOf(reading, where)
  return problems.length === 0 ? reading : problems.join('; ')
}

/** The fields, or what is wrong with the text. */
function fieldsOf(yaml: string, where: string): Fields | string {
  let value: unknown
  try {
    value = parse(yaml)
  } catch (error) {
    return `${where}: ${error instanceof Error ? error.message : String(error)}`
  }
  if (value === null || value === undefined) return {}
  return isRecord(value) ? value : `${where}: expected a mapping of mesh config fields`
}

function problemsOf(fields: Fields, where: string): string[] {
  const problems: string[] = []
  const expect = (holds: boolean, field: string, what: string): void => {
    if (!holds) problems.push(`${where}: ${field}: expected ${what}`)
  }
  const isText = (value: unknown): boolean => value === undefined || value === null || typeof value === 'string'
  for (const name of ['trustDomain', 'rootNamespace']) expect(isText(fields[name]), name, 'text')
  for (const name of ['defaultConfig', 'defaultProviders']) {
    expect(fields[name] === undefined || fields[name] === null || isRecord(fields[name]), name, 'a mapping')
  }
  if (isRecord(fields.defaultConfig)) {
    expect(isText(fields.defaultConfig.discoveryAddress), 'defaultConfig.discoveryAddress', 'text')
  }
  const lists: Readonly<Record<string, [(item: unknown) => boolean, string]>> = {
    trustDomainAliases: [(item) => typeof item === 'string', 'a list of text'],
    discoverySelectors: [isSelector, 'a list of label selectors'],
    serviceScopeConfigs: [isRecord, 'a list of mappings'],
    extensionProviders: [(item) => isRecord(item) && typeof item.name === 'string', 'a list of providers with names'],
    configSources: [
      (item) => isRecord(item) && /^(fs:\/\/\/.+|xds:\/\/[^/]+:\d+|k8s:\/\/)$/.test(String(item.address)),
      'a list of sources with the address fs:///dir, xds://host:port or k8s:// (this cluster)',
    ],
  }
  for (const [name, [fits, what]] of Object.entries(lists)) {
    const value = fields[name]
    if (value !== undefined && value !== null) expect(Array.isArray(value) && value.every(fits), name, what)
  }
  if (problems.length === 0 && Array.isArray(fields.configSources)) {
    for (const [at, { tlsSettings }] of (fields.configSources as Fields[]).entries()) {
      problems.push(
        ...tlsProblems(tlsSettings).map((problem) => `${where}: configSources[${at}].tlsSettings${problem}`),
      )
    }
  }
  return problems
}

/** What is not understood must not be passed over: it may be what the connection's safety rests on. */
function tlsProblems(settings: unknown): string[] {
  if (settings === undefined || settings === null) return []
  if (!isRecord(settings)) return [': expected a mapping']
  const { mode, subjectAltNames } = settings
  const problems: string[] = []
  if (mode !== undefined && mode !== 'SIMPLE' && mode !== 'DISABLE') problems.push('.mode: expected SIMPLE or DISABLE')
  if (subjectAltNames !== undefined && !(Array.isArray(subjectAltNames) && subjectAltNames.length <= 1)) {
    problems.push('.subjectAltNames: expected one name')
  }
  for (const name of ['clientCertificate', 'privateKey', 'caCrl', 'insecureSkipVerify']) {
    if (settings[name] !== undefined && settings[name] !== '' && settings[name] !== false) {
      problems.push(`.${name}: is not supported for configuration sources`)
    }
  }
  return problems
}

const operators: readonly unknown[] = ['In', 'NotIn', 'Exists', 'DoesNotExist']

function isSelector(value: unknown): boolean {
  if (!isRecord(value)) return false
  const { matchLabels = {}, matchExpressions = [] } = value
  return (
    isRecord(matchLabels) &&
    Object.values(matchLabels).every((label) => typeof label === 'string') &&
    Array.isArray(matchExpressions) &&
    matchExpressions.every(isRequirement)
  )
}

function isRequirement(value: unknown): boolean {
  if (!isRecord(value) || typeof value.key !== 'string' || !operators.includes(value.operator)) return false
  const values = value.values ?? []
  return Array.isArray(values) && values.every((one) => typeof one === 'string')
}

function layered(below: Fields, above: Fields): Fields {
  const merged: Record<string, unknown> = { ...below }
  for (const [name, value] of Object.entries(above)) {
    if (value === null || value === undefined) continue
    merged[name] = mergedField(name, below[name], value)
  }
  return merged
}

function mergedField(name: string, below: unknown, above: unknown): unknown {
  if (name === 'trustDomainAliases' && Array.isArray(below) && Array.isArray(above)) {
    return [...new Set([...below, ...above])].sort()
  }
  if (name === 'extensionProviders' && Array.isArray(below) && Array.isArray(above)) {
    const byName = new Map([...below, ...above].map((provider: Fields) => [provider.name, provider]))
    return [...byName.values()]
  }
  if (!isRecord(below) || !isRecord(above)) return above
  if (name === 'defaultProviders' || name === 'proxyMetadata' || name === 'proxyHeaders') return { ...below, ...above }
  if (name === 'defaultConfig') return layered(below, above)
  return above
}

function sourceOf(value: unknown): ConfigSourceSpec {
  const { address, tlsSettings } = value as { address: string; tlsSettings?: unknown }
  if (!isRecord(tlsSettings)) return { address }
  const { mode, caCertificates, credentialName, sni, subjectAltNames } = tlsSettings
  const [name] = Array.isArray(subjectAltNames) ? subjectAltNames : []
  const expected = name ?? sni
  return {
    address,
    tls: {
      isPlaintext: mode === 'DISABLE',
      ...(typeof caCertificates === 'string' && caCertificates !== '' ? { caCertificates } : {}),
      ...(typeof credentialName === 'string' && credentialName !== '' ? { credentialName } : {}),
      ...(typeof expected === 'string' ? { sni: expected } : {}),
    },
  }
}

function isRecord(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
