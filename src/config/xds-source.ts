// Configuration from another control plane, by xDS: a client of its types `group/version/Kind`.
import type { Resource } from '../api/index.ts'
import type { Scope } from '../observability/index.ts'
import { createDeltaClient, type DeltaClientOptions } from '../xds/client/index.ts'
import type { DeltaUpdate, DeltaVerdict } from '../xds/index.ts'
import { apiTypeUrl, decodeIstioResource, istioResourceType } from './istio-resource.ts'
import { createObjectStore, type StoreChange } from './object-store.ts'
import type { ConfigSource } from './source.ts'

export interface XdsSourceOptions {
  /** `host:port`. */
  readonly address: string
  readonly transport: DeltaClientOptions['transport']
  readonly headers: DeltaClientOptions['headers']
  /** Who we are: `<type>~<ip>~<id>~<domain>`. */
  readonly nodeId: string
  readonly namespace: string
  readonly kinds: readonly Resource[]
  readonly log: Scope
  readonly times?: DeltaClientOptions['times']
}

/** Connects at once and stays connected. What it has received stays in force while it is not. */
export function openXdsSource(options: XdsSourceOptions): ConfigSource & AsyncDisposable {
  const store = createObjectStore()
  const kinds = new Map(options.kinds.map((resource) => [apiTypeUrl(resource), resource]))

  function take({ typeUrl, resources, removed }: DeltaUpdate): DeltaVerdict {
    const resource = kinds.get(typeUrl)
    if (resource === undefined) return { rejected: [] }
    const changes: StoreChange[] = removed.map((name) => ({ kind: 'delete', of: resource, key: keyOf(name) }))
    const rejected: { name: string; reason: string }[] = []
    for (const { name, body } of resources) {
      try {
        changes.push({ kind: 'set', object: decodeIstioResource(resource, body) })
      } catch (error) {
        rejected.push({ name, reason: error instanceof Error ? error.message : String(error) })
      }
    }
    store.change(changes)
    return { rejected }
  }

  const client = createDeltaClient({
    address: options.address,
    transport: options.transport,
    headers: options.headers,
    node: { id: options.nodeId, metadata: { GENERATOR: 'api', NAMESPACE: options.namespace } },
    types: [...kinds.keys()].map((typeUrl) => ({ typeUrl, bodyType: istioResourceType })),
    onUpdate: take,
    log: options.log,
    ...(options.times === undefined ? {} : { times: options.times }),
  })
  client.synced.then(
    () => store.markSynced(),
    () => {},
  )
  return {
    informer: (resource) => store.informer(resource),
    [Symbol.asyncDispose]: () => client[Symbol.asyncDispose](),
  }
}

function keyOf(name: string): { namespace?: string; name: string } {
  const slash = name.indexOf('/')
  const namespace = name.slice(0, Math.max(slash, 0))
  return { ...(namespace === '' ? {} : { namespace }), name: name.slice(slash + 1) }
}
