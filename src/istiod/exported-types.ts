// The configuration that this control plane passes on to others, as xDS types.
import { status } from '@grpc/grpc-js'
import { type KubeObject, resources } from '../api/index.ts'
import { parseSpiffe } from '../ca/index.ts'
import { encodeMeshConfig, exportedKind, type MeshConfig, meshConfigTypeUrl } from '../config/index.ts'
import type { AmbientIndex, AmbientInputs } from '../discovery/ambient/index.ts'
import { type OneShotType, type ResourceSource, type ServedType, StreamError, type XdsClient } from '../xds/index.ts'
import { configurationKinds } from './cluster.ts'
import type { OtherKind } from './other-configuration.ts'
import type { DiscoverySettings } from './settings.ts'
import { syntheticServiceEntry } from './synthetic-service-entry.ts'

export interface ExportOptions {
  readonly inputs: AmbientInputs
  readonly index: Pick<AmbientIndex, 'services'>
  readonly others: readonly OtherKind[]
  readonly settings: Pick<DiscoverySettings, 'clusterId' | 'restrictsExport'>
  readonly mesh: { readonly current: MeshConfig; subscribe(listener: () => void): () => void }
}

/** One type for each kind of configuration, and one for mesh config. */
export function exportedTypes(options: ExportOptions): readonly ServedType[] {
  const { inputs, others, settings } = options
  const admit = admission(options)
  const served = (source: ResourceSource): ServedType => ({ source, isWildcard: true, admit })
  const computed = configurationKinds
    .filter((kind) => kind !== 'serviceEntries')
    .map((kind) =>
      served(
        exportedKind<{ readonly cluster: string; readonly object: KubeObject }>(
          resources[kind],
          inputs.collections[kind],
          ({ cluster, object }) => (cluster === settings.clusterId ? object : undefined),
        ),
      ),
    )
  return [
    served(meshConfigSource(options.mesh)),
    served(serviceEntrySource(options)),
    ...computed,
    ...others.map(({ resource, collection }) => served(exportedKind(resource, collection, (object) => object))),
  ]
}

/** Those that are written, and one for each Service of the cluster, so that the other control plane knows it, too. */
function serviceEntrySource({ inputs, index, settings }: ExportOptions): ResourceSource {
  const { graph, collections } = inputs
  const written = graph.derive('export/serviceEntries/written', collections.serviceEntries, (_, { cluster, object }) =>
    cluster === settings.clusterId ? (object as KubeObject) : undefined,
  )
  const synthetic = graph.deriveMany('export/serviceEntries/synthetic', index.services, (_, { info }, key) =>
    info.source.kind === 'Service' ? [[`synthetic ${key}`, syntheticServiceEntry(info)] as const] : [],
  )
  const all = graph.join('export/serviceEntries', [written, synthetic])
  return exportedKind(resources.serviceEntries, all, (object) => object)
}

function meshConfigSource(mesh: ExportOptions['mesh']): ResourceSource {
  let known: { readonly config: MeshConfig; readonly resource: ReturnType<typeof encodeMeshConfig> } | undefined
  const now = () => {
    if (known?.config !== mesh.current) known = { config: mesh.current, resource: encodeMeshConfig(mesh.current) }
    return known.resource
  }
  return {
    typeUrl: meshConfigTypeUrl,
    synced: true,
    list: () => [now()],
    get: (name) => (name === now().name ? now() : undefined),
    subscribe(listener) {
      let old = now()
      return mesh.subscribe(() => {
        const next = now()
        if (next.version === old.version) return
        listener([{ name: next.name, old, new: next }])
        old = next
      })
    },
  }
}

/** Kinds that are not known here have no objects: who asks for one must not wait for them. */
export function unknownKinds(options: Pick<ExportOptions, 'settings' | 'mesh'>) {
  const admit = admission(options)
  return (client: XdsClient, typeUrl: string): OneShotType | undefined => {
    if (client.metadata.GENERATOR !== 'api' || !/^[^/]+\/[^/]+\/[^/]+$/.test(typeUrl)) return undefined
    return {
      typeUrl,
      answer() {
        admit(client)
        return []
      },
    }
  }
}

function admission({ settings, mesh }: Pick<ExportOptions, 'settings' | 'mesh'>): (client: XdsClient) => void {
  return (client) => {
    if (settings.restrictsExport) admitControlPlane(client, mesh.current.rootNamespace)
  }
}

/** Configuration is for control planes alone: it says more than any proxy needs to know. */
export function admitControlPlane({ identities }: XdsClient, rootNamespace: string): void {
  if (identities.length === 0) {
    throw new StreamError(status.UNAUTHENTICATED, 'the api generator requires an authenticated control-plane identity')
  }
  if (!identities.some((identity) => namespaceOf(identity) === rootNamespace)) {
    throw new StreamError(
      status.PERMISSION_DENIED,
      'the api generator is restricted to the control-plane (root) namespace',
    )
  }
}

function namespaceOf(identity: string): string | undefined {
  try {
    return parseSpiffe(identity).namespace
  } catch {
    return undefined
  }
}
