// Delta xDS updates of the two types the node proxy reads → one change of the mesh state, and the verdict for the control plane.
import type { Policy } from '../model.ts'
import { type DecodedAddress, decodeAddress } from './decode-address.ts'
import { decodePolicy } from './decode-policy.ts'
import { StateError } from './errors.ts'
import { createInterner, type Interner } from './intern.ts'
import type { MeshState } from './store.ts'

export const addressTypeUrl = 'type.googleapis.com/istio.workload.Address'
export const authorizationTypeUrl = 'type.googleapis.com/istio.security.Authorization'

interface DeltaUpdate {
  readonly typeUrl: string
  readonly resources: readonly { readonly name: string; readonly version: string; readonly body: Uint8Array }[]
  readonly removed: readonly string[]
}

interface Rejection {
  readonly name: string
  readonly reason: string
}

interface DeltaVerdict {
  readonly rejected: readonly Rejection[]
}

/**
 * Returns the function that applies one response, as a whole. A rejected resource leaves its previous version in force and does not touch
 * the others. Throws as `apply` does when there is no room: then nothing of the response is in force. A policy rejected before any
 * version of it was accepted is enforced as the strictest policy of its action. Resources of other types are ignored.
 */
export function createDeltaReceiver(state: MeshState): (update: DeltaUpdate) => DeltaVerdict {
  const interner = createInterner()
  return (update) => {
    switch (update.typeUrl) {
      case addressTypeUrl:
        return applyAddresses(state, update, interner)
      case authorizationTypeUrl:
        return applyPolicies(state, update)
      default:
        return { rejected: [] }
    }
  }
}

function applyAddresses(state: MeshState, update: DeltaUpdate, interner: Interner): DeltaVerdict {
  const rejected: Rejection[] = []
  /** One after the other, as they are stored: a push of many must not stand in memory decoded as a whole. */
  function* decoded(): Generator<DecodedAddress> {
    for (const { name, body } of update.resources) {
      try {
        yield decodeAddress(body, interner)
      } catch (error) {
        if (!(error instanceof StateError)) throw error
        rejected.push({ name, reason: error.message })
      }
    }
  }
  const addresses = update.resources.length === 0 ? [] : decoded()
  state.apply({ addresses, removedAddresses: update.removed })
  return { rejected }
}

function applyPolicies(state: MeshState, update: DeltaUpdate): DeltaVerdict {
  const policies: Policy[] = []
  const rejected: Rejection[] = []
  for (const { name, body } of update.resources) {
    const decoded = decodePolicy(body)
    if (decoded.kind === 'policy') {
      policies.push(decoded.policy)
      continue
    }
    rejected.push({ name, reason: decoded.reason })
    const { standIn } = decoded
    const known = standIn === undefined ? undefined : state.policy(`${standIn.namespace}/${standIn.name}`)
    if (standIn !== undefined && (known === undefined || known.rejected !== undefined)) policies.push(standIn)
  }
  state.apply({ policies, removedPolicies: update.removed })
  return { rejected }
}
