// Configuration objects as the messages in which control planes pass them on: metadata and the spec inside an Any.
import { createHash } from 'node:crypto'
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
import {
  extensions,
  mcp,
  networking,
  policies,
  proxies,
  proxyConfig,
  telemetry,
  traffic,
} from '../proto/control-plane/index.ts'
import { fromProtoJson, toProtoJson } from './proto-json.ts'
import { kindKey, kindOf } from './source.ts'

export const istioResourceType = 'type.googleapis.com/istio.mcp.v1alpha1.Resource'
const prefix = 'type.googleapis.com/'
const structType = `${prefix}google.protobuf.Struct`

/** Kinds whose spec has a message of its own; the specs of all others travel as a Struct. */
const specOf: Readonly<Record<string, DescMessage>> = {
  'networking.istio.io/ServiceEntry': networking.ServiceEntrySchema,
  'networking.istio.io/WorkloadEntry': networking.WorkloadEntrySchema,
  'networking.istio.io/WorkloadGroup': proxies.WorkloadGroupSchema,
  'networking.istio.io/EnvoyFilter': proxies.EnvoyFilterSchema,
  'networking.istio.io/VirtualService': traffic.VirtualServiceSchema,
  'networking.istio.io/DestinationRule': traffic.DestinationRuleSchema,
  'networking.istio.io/Gateway': traffic.GatewaySchema,
  'networking.istio.io/Sidecar': traffic.SidecarSchema,
  'networking.istio.io/ProxyConfig': proxyConfig.ProxyConfigSchema,
  'security.istio.io/AuthorizationPolicy': policies.AuthorizationPolicySchema,
  'security.istio.io/PeerAuthentication': policies.PeerAuthenticationSchema,
  'security.istio.io/RequestAuthentication': policies.RequestAuthenticationSchema,
  'telemetry.istio.io/Telemetry': telemetry.TelemetrySchema,
  'extensions.istio.io/WasmPlugin': extensions.WasmPluginSchema,
  'extensions.istio.io/TrafficExtension': extensions.TrafficExtensionSchema,
}

/** `group/version/Kind`: the xDS type under which the objects of a kind are passed on. */
export function apiTypeUrl(resource: Resource): string {
  return `${apiVersionOf(resource)}/${resource.kind}`
}

export function encodeIstioResource(object: KubeObject): Uint8Array {
  const { metadata } = object
  const { namespace = '', name, creationTimestamp, resourceVersion = '', labels = {}, annotations = {} } = metadata
  const resource = create(mcp.ResourceSchema, {
    metadata: {
      name: `${namespace}/${name}`,
      version: resourceVersion,
      labels,
      annotations,
      ...(creationTimestamp === undefined ? {} : { createTime: timestampFromDate(new Date(creationTimestamp)) }),
    },
    body: bodyOf(specOf[kindOf(object)], (object.spec ?? {}) as JsonObject),
  })
  return toBinary(mcp.ResourceSchema, resource)
}

/** The same for the same bytes, whoever encodes them. */
export function contentVersion(body: Uint8Array): string {
  return createHash('sha256').update(body).digest('base64url').slice(0, 16)
}

/** A spec that doesn't fit its message travels as it is, so that its reader closes what it was to close. */
export function bodyOf(schema: DescMessage | undefined, spec: JsonObject): { typeUrl: string; value: Uint8Array } {
  if (schema !== undefined) {
    try {
      const message = fromJson(schema, toProtoJson(schema, spec))
      return { typeUrl: `${prefix}${schema.typeName}`, value: toBinary(schema, message) }
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
    spec: specFrom(resource, body.typeUrl, body.value),
  }
}

function specFrom(resource: Resource, typeUrl: string, value: Uint8Array): JsonValue {
  if (typeUrl === structType) return toJson(StructSchema, fromBinary(StructSchema, value))
  const schema = specOf[kindKey(resource)]
  // The package tells the version in which the sender has the message; its fields are the same in all.
  if (schema === undefined || typeUrl.split('.').at(-1) !== schema.name) {
    throw new Error(`${resource.kind}: a body of type ${typeUrl} is not known`)
  }
  return fromProtoJson(schema, toJson(schema, fromBinary(schema, value)))
}
