// The index as a person reads it: the messages as JSON, addresses as text.
import { fromBinary, type JsonValue, toJson } from '@bufbuild/protobuf'
import { security, workload } from '../../proto/index.ts'
import { ipText } from './addresses.ts'
import type { AmbientIndex } from './ambient-index.ts'

export interface AmbientView {
  readonly workloads: readonly JsonValue[]
  readonly services: readonly JsonValue[]
  readonly policies: readonly JsonValue[]
}

/** Everything that is served, each list in the order of its names. */
export function viewAmbient(index: Pick<AmbientIndex, 'addresses' | 'authorizations'>): AmbientView {
  const byName = (a: { readonly name: string }, b: { readonly name: string }): number => (a.name < b.name ? -1 : 1)
  const workloads: JsonValue[] = []
  const services: JsonValue[] = []
  for (const { body } of [...index.addresses.list()].sort(byName)) {
    const { type } = fromBinary(workload.AddressSchema, body)
    if (type.case === 'workload') workloads.push(readable(toJson(workload.WorkloadSchema, type.value)))
    if (type.case === 'service') services.push(readable(toJson(workload.ServiceSchema, type.value)))
  }
  const policies = [...index.authorizations.list()]
    .sort(byName)
    .map(({ body }) => readable(toJson(security.AuthorizationSchema, fromBinary(security.AuthorizationSchema, body))))
  return { workloads, services, policies }
}

/** The only bytes in these messages are addresses: `address`, and the elements of a workload's `addresses`. */
function readable(value: JsonValue, field = ''): JsonValue {
  if (typeof value === 'string' && (field === 'address' || field === 'addresses')) {
    return ipText(Uint8Array.from(Buffer.from(value, 'base64')))
  }
  if (Array.isArray(value)) return value.map((one) => readable(one, field))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, readable(one, key)]))
}
