// What a delta client holds of one type, from which its requests are made.
import { create, type MessageInitShape } from '@bufbuild/protobuf'
import { discovery } from '../../proto/index.ts'
import type { DeltaUpdate, DeltaVerdict } from '../types.ts'

export type DeltaRequest = discovery.DeltaDiscoveryRequest
type RequestFields = MessageInitShape<typeof discovery.DeltaDiscoveryRequestSchema>

/** The resources of one type: name to version; "" for one asked for and not answered, or found missing. */
export interface Holdings {
  readonly typeUrl: string
  readonly onDemand: boolean
  /** True once a response was accepted whole; an on-demand type has nothing to wait for. */
  synced: boolean
  readonly versions: Map<string, string>
  /** Held, but left out of this stream's report, and not heard of since: the server tells nothing of their removal. */
  readonly unreported: Set<string>
  /** Names asked for by the owner (on-demand types). */
  readonly asked: Set<string>
}

export function createHoldings(type: { readonly typeUrl: string; readonly onDemand?: boolean }): Holdings {
  const onDemand = type.onDemand === true
  return {
    typeUrl: type.typeUrl,
    onDemand,
    synced: onDemand,
    versions: new Map(),
    unreported: new Set(),
    asked: new Set(),
  }
}

/** Servers take messages of 4 MiB. */
export const mostReportedBytes = 3 * 1024 * 1024

/** The first request of a stream for this type. What does not fit into the report is left out of it, and noted as unreported. */
export function firstRequest(held: Holdings, mostBytes: number = mostReportedBytes): DeltaRequest {
  const initialResourceVersions: Record<string, string> = {}
  held.unreported.clear()
  let bytes = 0
  for (const [name, version] of held.versions) {
    // Names and versions are mostly ASCII; an entry has two tags and three lengths besides.
    bytes += Buffer.byteLength(name) + Buffer.byteLength(version) + 12
    if (bytes <= mostBytes || held.onDemand) initialResourceVersions[name] = version
    else held.unreported.add(name)
  }
  for (const name of held.asked) initialResourceVersions[name] ??= ''
  return request(held, {
    initialResourceVersions,
    // Both together mean: nothing but what is named.
    ...(held.onDemand ? { resourceNamesSubscribe: ['*'], resourceNamesUnsubscribe: ['*'] } : {}),
  })
}

export function subscribeRequest(held: Holdings, names: readonly string[]): DeltaRequest {
  return request(held, { resourceNamesSubscribe: [...names] })
}

export function unsubscribeRequest(held: Holdings, names: readonly string[]): DeltaRequest {
  return request(held, { resourceNamesUnsubscribe: [...names] })
}

/** Records what of an update is in force. A rejected resource keeps no version, so that it is sent again after a reconnect; one whose removal was rejected keeps its version, so that the removal is. */
export function recordUpdate(held: Holdings, update: DeltaUpdate, verdict: DeltaVerdict): void {
  const rejected = new Set(verdict.rejected.map(({ name }) => name))
  for (const { name } of update.resources) held.unreported.delete(name)
  for (const name of update.removed) held.unreported.delete(name)
  for (const { name, version } of update.resources) {
    if (rejected.has(name)) held.versions.delete(name)
    else held.versions.set(name, version)
  }
  for (const name of update.removed) if (!rejected.has(name)) held.versions.delete(name)
}

/** So that a rejection of everything does not become a message as large as the push. */
const mostTold = 200

export function acknowledgement(
  held: { readonly typeUrl: string },
  nonce: string,
  verdict: DeltaVerdict,
): DeltaRequest {
  if (verdict.rejected.length === 0) return request(held, { responseNonce: nonce })
  const told = verdict.rejected.slice(0, mostTold).map(({ name, reason }) => `${name}: ${reason}`)
  const untold = verdict.rejected.length - told.length
  const message = [...told, ...(untold > 0 ? [`and ${untold} more`] : [])].join('; ')
  // 3 is INVALID_ARGUMENT.
  return request(held, { responseNonce: nonce, errorDetail: { code: 3, message } })
}

function request(held: { readonly typeUrl: string }, fields: RequestFields): DeltaRequest {
  return create(discovery.DeltaDiscoveryRequestSchema, { typeUrl: held.typeUrl, ...fields })
}
