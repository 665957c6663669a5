// Requests as they come in: decoded only when what they would take is bounded.
import { type DescMessage, fromBinary } from '@bufbuild/protobuf'
import { BinaryReader } from '@bufbuild/protobuf/wire'
import { status } from '@grpc/grpc-js'
import { discovery } from '../../proto/index.ts'
import { StreamError } from './stream-error.ts'

/** `bytes`: what it took on the wire. */
export type Request =
  | { readonly kind: 'delta'; readonly message: discovery.DeltaDiscoveryRequest; readonly bytes: number }
  | { readonly kind: 'sotw'; readonly message: discovery.DiscoveryRequest; readonly bytes: number }

/** What the names that a client subscribes to may take, each with what it costs to hold it; who wants more asks for everything. */
export const mostNameBytes = 64 * 1024 * 1024
export const nameOverheadBytes = 64
/** What node, error and locators of a request may take: values of two bytes in them are objects once they are decoded. */
const mostNestedBytes = 1024 * 1024

const schemas = { delta: discovery.DeltaDiscoveryRequestSchema, sotw: discovery.DiscoveryRequestSchema } as const

/** Throws a StreamError for bytes that are no request, and for one that would take more than a client may. */
export function readRequest(kind: Request['kind'], wire: Buffer): Request {
  const bytes = wire.byteLength
  try {
    // A name of a few bytes takes many times as much once it is decoded.
    const { fields, nestedBytes } = sizeOf(schemas[kind], wire)
    if (bytes + fields * nameOverheadBytes > mostNameBytes) throw tooManyNames()
    if (nestedBytes > mostNestedBytes) {
      throw new StreamError(
        status.RESOURCE_EXHAUSTED,
        `node, error and locators of a request take more than ${mostNestedBytes} bytes`,
      )
    }
    return kind === 'delta'
      ? { kind, message: fromBinary(schemas.delta, wire), bytes }
      : { kind, message: fromBinary(schemas.sotw, wire), bytes }
  } catch (error) {
    if (error instanceof StreamError) throw error
    throw new StreamError(status.INVALID_ARGUMENT, 'the request cannot be read')
  }
}

export function tooManyNames(): StreamError {
  return new StreamError(
    status.RESOURCE_EXHAUSTED,
    `the names subscribed to take more than ${mostNameBytes} bytes: ask for everything`,
  )
}

function sizeOf(schema: DescMessage, wire: Uint8Array): { readonly fields: number; readonly nestedBytes: number } {
  const nested = new Set(
    schema.fields.flatMap(({ fieldKind, message, number }) => (fieldKind !== 'map' && message ? [number] : [])),
  )
  const reader = new BinaryReader(wire)
  let fields = 0
  let nestedBytes = 0
  for (; reader.pos < reader.len; fields += 1) {
    const [field, type] = reader.tag()
    const { byteLength } = reader.skip(type, field)
    if (nested.has(field)) nestedBytes += byteLength
  }
  return { fields, nestedBytes }
}
