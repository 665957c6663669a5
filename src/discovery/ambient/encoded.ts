// Resources as they are served: encoded once, with a version that depends on the content alone.
import { hash } from 'node:crypto'
import { toBinary } from '@bufbuild/protobuf'
import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire'
import { security, workload } from '../../proto/index.ts'
import type { EncodedResource } from '../../xds/index.ts'
import { addressKey } from './addresses.ts'

/** An Address resource, with what finds it. */
export interface EncodedAddress extends EncodedResource {
  readonly kind: 'workload' | 'service'
  /** Keys of the services a workload belongs to. */
  readonly services: readonly string[]
  /** The node a workload runs on; empty where it has none. */
  readonly node: string
  /** Whether a service is the preferred one of its host name. */
  readonly canonical: boolean
  /** The bytes of the bare Workload or Service inside the Address. */
  readonly inner: Uint8Array
}

export function encodeWorkload(message: workload.Workload): EncodedAddress {
  const { body, inner } = insideAddress(1, toBinary(workload.WorkloadSchema, message))
  return {
    ...encode(message.uid, workloadAliases(message), body),
    kind: 'workload',
    services: Object.keys(message.services),
    node: message.node,
    canonical: false,
    inner,
  }
}

export function encodeService(message: workload.Service): EncodedAddress {
  const { body, inner } = insideAddress(2, toBinary(workload.ServiceSchema, message))
  return {
    ...encode(`${message.namespace}/${message.hostname}`, serviceAliases(message), body),
    kind: 'service',
    services: [],
    node: '',
    canonical: message.canonical,
    inner,
  }
}

export function encodeAuthorization(message: security.Authorization): EncodedResource {
  return encode(`${message.namespace}/${message.name}`, [], toBinary(security.AuthorizationSchema, message))
}

/** Whether two encoded resources are the same to every client. */
export function equalEncoded(a: EncodedResource, b: EncodedResource): boolean {
  return a.version === b.version && a.name === b.name && a.aliases.join() === b.aliases.join()
}

function encode(name: string, aliases: readonly string[], body: Uint8Array): EncodedResource {
  return { name, aliases, version: hash('sha256', body, 'hex').slice(0, 16), body }
}

/** The Address with a message in this field, and the message's bytes inside it. */
function insideAddress(field: number, message: Uint8Array): { body: Uint8Array; inner: Uint8Array } {
  const body = new BinaryWriter().tag(field, WireType.LengthDelimited).bytes(message).finish()
  return { body, inner: body.subarray(body.length - message.length) }
}

function workloadAliases({ network, addresses }: workload.Workload): string[] {
  return addresses.map((address) => addressKey(network, address))
}

function serviceAliases({ addresses }: workload.Service): string[] {
  return addresses.map(({ network, address, length }) => addressKey(network, address, length))
}
