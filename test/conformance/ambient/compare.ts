// Resources in a form that compares as the suites ask: decoded, with lists whose order has no meaning sorted.
import { type DescMessage, fromBinary, fromJson, type JsonValue, type MessageShape, toJson } from '@bufbuild/protobuf'
import { security, workload } from '../../../src/proto/index.ts'
import type { EncodedResource } from '../../../src/xds/index.ts'

type Json = { [key: string]: JsonValue }

export function addressOf({ name, aliases, body }: EncodedResource): Json {
  const { type } = fromBinary(workload.AddressSchema, body)
  return {
    name,
    aliases: [...aliases].sort(),
    ...(type.case === 'workload' ? { workload: normal(workload.WorkloadSchema, type.value) } : {}),
    ...(type.case === 'service' ? { service: normalService(type.value) } : {}),
  }
}

export function expectedAddress(expected: Json): Json {
  const { name = '', aliases = [], workload: one, service } = expected
  return {
    name,
    aliases: [...(aliases as string[])].sort(),
    ...(one === undefined ? {} : { workload: normal(workload.WorkloadSchema, fromJson(workload.WorkloadSchema, one)) }),
    ...(service === undefined ? {} : { service: normalService(fromJson(workload.ServiceSchema, service)) }),
  }
}

export function authorizationOf({ body }: EncodedResource): Json {
  return normalAuthorization(fromBinary(security.AuthorizationSchema, body))
}

export function expectedAuthorization(expected: JsonValue): Json {
  return normalAuthorization(fromJson(security.AuthorizationSchema, expected))
}

function normal<S extends DescMessage>(schema: S, message: MessageShape<S>): Json {
  return toJson(schema, message) as Json
}

function normalService(service: workload.Service): Json {
  const json = normal(workload.ServiceSchema, service)
  return {
    ...json,
    ...(json.addresses === undefined ? {} : { addresses: sorted(json.addresses) }),
    ...(json.subjectAltNames === undefined ? {} : { subjectAltNames: sorted(json.subjectAltNames) }),
  }
}

/** Groups, rules, matches and the lists inside a match are sets. */
function normalAuthorization(authorization: security.Authorization): Json {
  return sortLists(normal(security.AuthorizationSchema, authorization)) as Json
}

function sortLists(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return sorted(value.map(sortLists))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, sortLists(one)]))
}

function sorted(values: JsonValue): JsonValue[] {
  const text = new Map((values as JsonValue[]).map((value) => [value, JSON.stringify(value)]))
  return (values as JsonValue[]).toSorted((a, b) => ((text.get(a) ?? '') < (text.get(b) ?? '') ? -1 : 1))
}
