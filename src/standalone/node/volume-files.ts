// The files of configMap, secret, downwardAPI and projected volumes.
import type { ProjectedFile } from './atomic-directory.ts'
import { ConfigError, type EnvironmentSources, podField, resourceValue } from './environment.ts'
import { projectedRoots } from './trust-bundles.ts'
import type { ClusterTrustBundle, ConfigMap, Pod, Secret, Volume } from './types.ts'

export interface VolumeSources
  extends Pick<EnvironmentSources, 'pod' | 'nodeName' | 'hostIPs' | 'podIPs' | 'resources' | 'configMap' | 'secret'> {
  trustBundles(): readonly ClusterTrustBundle[]
  /** A bound service account token; the caller renews it in time. */
  token(audience: string | undefined, expirationSeconds: number): Promise<string>
}

type Projection = NonNullable<NonNullable<Volume['projected']>['sources']>[number]

/** The volume's files, or undefined for a volume of another type. @throws ConfigError when a required object is missing. */
export async function volumeFiles(
  volume: Volume,
  sources: VolumeSources,
): Promise<Map<string, ProjectedFile> | undefined> {
  const projections = projectionsOf(volume)
  if (projections === undefined) return undefined
  const files = new Map<string, ProjectedFile>()
  const defaultMode = projections.defaultMode ?? 0o644
  for (const projection of projections.sources) {
    for (const [path, file] of await projectionFiles(projection, defaultMode, sources)) files.set(path, file)
  }
  const group = sources.pod.spec?.securityContext?.fsGroup
  if (group === undefined) return files
  return new Map(
    [...files].map(([path, file]) => [path, { ...file, mode: file.mode | 0o440, owner: { uid: 0, gid: group } }]),
  )
}

function projectionsOf(volume: Volume): { sources: Projection[]; defaultMode?: number } | undefined {
  const { configMap, secret, downwardAPI, projected } = volume
  if (configMap) return { sources: [{ configMap }], ...mode(configMap.defaultMode) }
  if (downwardAPI) return { sources: [{ downwardAPI }], ...mode(downwardAPI.defaultMode) }
  if (projected) return { sources: projected.sources ?? [], ...mode(projected.defaultMode) }
  if (secret) {
    const { secretName: name, items, optional } = secret
    return {
      sources: [{ secret: { ...(name && { name }), ...(items && { items }), ...(optional && { optional }) } }],
      ...mode(secret.defaultMode),
    }
  }
  return undefined
}

function mode(value: number | undefined): { defaultMode?: number } {
  return value === undefined ? {} : { defaultMode: value }
}

async function projectionFiles(
  projection: Projection,
  defaultMode: number,
  sources: VolumeSources,
): Promise<[string, ProjectedFile][]> {
  const { configMap, secret, downwardAPI, serviceAccountToken, clusterTrustBundle } = projection
  if (configMap) {
    const object = sources.configMap(configMap.name ?? '')
    return keyFiles('configmap', configMap, object && configMapBytes(object), defaultMode)
  }
  if (secret) {
    const object = sources.secret(secret.name ?? '')
    return keyFiles('secret', secret, object && secretBytes(object), defaultMode)
  }
  if (serviceAccountToken) {
    const { audience, expirationSeconds = 3600, path } = serviceAccountToken
    const token = await sources.token(audience, expirationSeconds)
    return [
      [
        checkedPath(path),
        { content: Buffer.from(token), mode: tokenMode(sources.pod, defaultMode), ...owner(sources.pod) },
      ],
    ]
  }
  if (clusterTrustBundle) {
    const { name, signerName, optional, path } = clusterTrustBundle
    const roots = projectedRoots(clusterTrustBundle, sources.trustBundles())
    if (roots === undefined && optional !== true) {
      throw new ConfigError(`clustertrustbundle ${name === undefined ? `of ${signerName}` : `"${name}"`} not found`)
    }
    return [[checkedPath(path), { content: Buffer.from(roots ?? ''), mode: defaultMode }]]
  }
  return (downwardAPI?.items ?? []).map((item) => {
    const value = item.fieldRef
      ? podField(item.fieldRef.fieldPath, sources)
      : item.resourceFieldRef && downwardResource(item.resourceFieldRef, sources)
    return [checkedPath(item.path), { content: Buffer.from(value ?? ''), mode: item.mode ?? defaultMode }]
  })
}

function downwardResource(
  ref: { readonly containerName?: string; readonly resource: string; readonly divisor?: string },
  sources: VolumeSources,
): string | undefined {
  const container = sources.pod.spec?.containers.find((container) => container.name === ref.containerName)
  return container && resourceValue(ref, container, sources.resources)
}

/** A token is for its pod's user alone, where one user is known. */
function tokenMode(pod: Pod, defaultMode: number): number {
  return owner(pod).owner === undefined ? defaultMode : 0o600
}

function owner(pod: Pod): { owner?: { uid: number; gid: number } } {
  const containers = [...(pod.spec?.initContainers ?? []), ...(pod.spec?.containers ?? [])]
  const users = new Set(
    containers.map((c) => c.securityContext?.runAsUser ?? pod.spec?.securityContext?.runAsUser ?? 0),
  )
  const [only] = users
  return users.size === 1 && only !== undefined ? { owner: { uid: only, gid: 0 } } : {}
}

function keyFiles(
  kind: string,
  ref: {
    readonly name?: string
    readonly optional?: boolean
    readonly items?: readonly { key: string; path: string; mode?: number }[]
  },
  entries: ReadonlyMap<string, Uint8Array> | undefined,
  defaultMode: number,
): [string, ProjectedFile][] {
  if (entries === undefined) {
    if (ref.optional === true) return []
    throw new ConfigError(`${kind} "${ref.name}" not found`)
  }
  if (ref.items === undefined) return [...entries].map(([key, content]) => [key, { content, mode: defaultMode }])
  return ref.items.flatMap((item): [string, ProjectedFile][] => {
    const content = entries.get(item.key)
    if (content !== undefined) return [[checkedPath(item.path), { content, mode: item.mode ?? defaultMode }]]
    if (ref.optional === true) return []
    throw new ConfigError(`${kind} "${ref.name}" has no key ${item.key}`)
  })
}

function checkedPath(path: string): string {
  if (path.startsWith('/') || path.split('/').includes('..')) throw new ConfigError(`path ${path} leaves its volume`)
  return path
}

function configMapBytes(object: ConfigMap): Map<string, Uint8Array> {
  return new Map([
    ...Object.entries(object.data ?? {}).map(([key, value]): [string, Uint8Array] => [key, Buffer.from(value)]),
    ...Object.entries(object.binaryData ?? {}).map(([key, value]): [string, Uint8Array] => [
      key,
      Buffer.from(value, 'base64'),
    ]),
  ])
}

function secretBytes(object: Secret): Map<string, Uint8Array> {
  return new Map(Object.entries(object.data ?? {}).map(([key, value]) => [key, Buffer.from(value, 'base64')]))
}
