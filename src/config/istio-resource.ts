// Configuration objects as the messages in which control planes pass them on: metadata and the spec inside an Any.
import {
  create,
  type DescMessage,
  fromBinary,
  fromJson,
  type JsonObject,
  type JsonValue,
  toBinary,
  toJson,
} from '@bufbuild/protobuf'
import { StructSchema, timestampDate, timestampFromDate } from '@bufbuild/protobuf/wkt'
import { apiVersionOf, type KubeObject, type Resource } from '../api/index.ts'
import { mcp, networking, policies } from '../proto/control-plane/index.ts'

export const istioResourceType = 'type.googleapis.com/istio.mcp.v1alpha1.Resource'
const prefix = 'type.googleapis.com/'
const structType = `${prefix}google.protobuf.Struct`

/** Kinds whose spec has a message of its own; the specs of all others travel as a Struct. */
const specOf: Readonly<Record<string, DescMessage>> = {
  ServiceEntry: networking.ServiceEntrySchema,
  WorkloadEntry: networking.WorkloadEntrySchema,
  AuthorizationPolicy: policies.AuthorizationPolicySchema,
  PeerAuthentication: policies.PeerAuthenticationSchema,
}

/** `group/version/Kind`: the xDS type under which the objects of a kind are passed on. */
export function apiTypeUrl(resource: Resource): string {
  return `${apiVersionOf(resource)}/${resource.kind}`
}

export function encodeIstioResource(object: KubeObject): Uint8Array {
  const { metadata, kind } = object
  const { namespace = '', name, creationTimestamp, resourceVersion = '', labels = {}, annotations = {} } = metadata
  const resource = create(mcp.ResourceSchema, {
    metadata: {
      name: `${namespace}/${name}`,
      version: resourceVersion,
      labels,
      annotations,
      ...(creationTimestamp === undefined ? {} : { createTime: timestampFromDate(new Date(creationTimestamp)) }),
    },
    body: bodyOf(kind, (object.spec ?? {}) as JsonObject),
  })
  return toBinary(mcp.ResourceSchema, resource)
}

/** A spec that doesn't fit its message travels as it is, so that its reader closes what it was to close. */
function bodyOf(kind: string, spec: JsonObject): { typeUrl: string; value: Uint8Array } {
  const schema = specOf[kind]
  if (schema !== undefined) {
    try {
      return { typeUrl: `${prefix}${schema.typeName}`, value: toBinary(schema, fromJson(schema, spec)) }
    } catch {
      // As a Struct.
    }
  }
  return { typeUrl: structType, value: toBinary(StructSchema, fromJson(StructSchema, spec)) }
}

/** Throws when the bytes are no such message. Fields that the sender knows and we don't are lost. */
export function decodeIstioResource(resource: Resource, bytes: Uint8Array): KubeObject {
  const { metadata, body } = fromBinary(mcp.ResourceSchema, bytes)
  const [namespace = '', name = ''] = (metadata?.name ?? '').split('/')
  if (name === '' || body === undefined) throw new Error('expected a resource with a name and a body')
  const { createTime, version = '', labels = {}, annotations = {} } = metadata ?? {}
  return {
    apiVersion: apiVersionOf(resource),
    kind: resource.kind,
    metadata: {
      name,
      ...(namespace === '' ? {} : { namespace }),
      ...(version === '' ? {} : { resourceVersion: version }),
      ...(createTime === undefined ? {} : { creationTimestamp: timestampDate(createTime).toISOString() }),
      ...(Object.keys(labels).length === 0 ? {} : { labels }),
      ...(Object.keys(annotations).length === 0 ? {} : { annotations }),
    },
    spec: specFrom(resource.kind, body.typeUrl, body.value),
  }
}

function specFrom(kind: string, typeUrl: string, value: Uint8Array): JsonValue {
  if (typeUrl === structType) return toJson(StructSchema, fromBinary(StructSchema, value))
  const schema = specOf[kind]
  // The package tells the version in which the sender has the message; its fields are the same in all.
  if (schema === undefined || typeUrl.split('.').at(-1) !== schema.name) {
    throw new Error(`${kind}: a body of type ${typeUrl} is not known`)
  }
  return toJson(schema, fromBinary(schema, value))
}
