// What a pod refers to by name in its own namespace, and its node therefore has to read.
import type { KubeObject } from '../../types.ts'

type Fields = Readonly<Record<string, unknown>>

export interface PodReferences {
  readonly secrets: ReadonlySet<string>
  readonly configMaps: ReadonlySet<string>
  readonly claims: ReadonlySet<string>
  readonly serviceAccount: string | undefined
  /** Audiences of the tokens that its volumes hold; empty text is that of the API server. */
  readonly tokenAudiences: ReadonlySet<string>
}

export const noReferences: PodReferences = {
  secrets: new Set(),
  configMaps: new Set(),
  claims: new Set(),
  serviceAccount: undefined,
  tokenAudiences: new Set(),
}

/** On a pod that a node itself put up to show what it runs of its own: it gives the node no right to anything. */
export const mirrorAnnotation = 'kubernetes.io/config.mirror'

export function isMirror({ metadata }: KubeObject): boolean {
  return metadata.annotations?.[mirrorAnnotation] !== undefined
}

/** Where a volume's source, or a part of it, names a Secret: the path to the name. */
const secretPaths: readonly (readonly string[])[] = [
  ['secret', 'secretName'],
  ['azureFile', 'secretName'],
  ['cephfs', 'secretRef', 'name'],
  ['cinder', 'secretRef', 'name'],
  ['csi', 'nodePublishSecretRef', 'name'],
  ['flexVolume', 'secretRef', 'name'],
  ['iscsi', 'secretRef', 'name'],
  ['rbd', 'secretRef', 'name'],
  ['scaleIO', 'secretRef', 'name'],
  ['storageos', 'secretRef', 'name'],
]

export function podReferences(pod: KubeObject): PodReferences {
  const spec = fields(pod.spec)
  const secrets = new Set<string>()
  const configMaps = new Set<string>()
  const claims = new Set<string>()
  const tokenAudiences = new Set<string>()
  const note = (names: Set<string>, value: unknown): void => {
    if (typeof value === 'string' && value !== '') names.add(value)
  }
  for (const secret of list(spec.imagePullSecrets)) note(secrets, secret.name)
  for (const volume of list(spec.volumes)) {
    for (const path of secretPaths) note(secrets, at(volume, path))
    note(configMaps, at(volume, ['configMap', 'name']))
    note(claims, at(volume, ['persistentVolumeClaim', 'claimName']))
    if (volume.ephemeral !== undefined) note(claims, `${pod.metadata.name}-${volume.name}`)
    for (const source of list(at(volume, ['projected', 'sources']))) {
      note(secrets, at(source, ['secret', 'name']))
      note(configMaps, at(source, ['configMap', 'name']))
      if (source.serviceAccountToken !== undefined) {
        tokenAudiences.add(String(at(source, ['serviceAccountToken', 'audience']) ?? ''))
      }
    }
  }
  for (const container of ['initContainers', 'containers', 'ephemeralContainers'].flatMap((name) => list(spec[name]))) {
    for (const from of list(container.envFrom)) {
      note(secrets, at(from, ['secretRef', 'name']))
      note(configMaps, at(from, ['configMapRef', 'name']))
    }
    for (const variable of list(container.env)) {
      note(secrets, at(variable, ['valueFrom', 'secretKeyRef', 'name']))
      note(configMaps, at(variable, ['valueFrom', 'configMapKeyRef', 'name']))
    }
  }
  const account = spec.serviceAccountName
  return {
    secrets,
    configMaps,
    claims,
    serviceAccount: typeof account === 'string' && account !== '' ? account : undefined,
    tokenAudiences,
  }
}

function fields(value: unknown): Fields {
  return typeof value === 'object' && value !== null ? (value as Fields) : {}
}

function list(value: unknown): readonly Fields[] {
  return Array.isArray(value) ? value.map(fields) : []
}

function at(value: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>((inner, name) => fields(inner)[name], value)
}
