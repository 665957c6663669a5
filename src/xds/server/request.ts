// Requests as they come in: decoded only when what they would take is bounded.
import { fromBinary } from '@bufbuild/protobuf'
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

/** Throws a StreamError for bytes that are no request, and for one with more names than a client may subscribe to. */
export function readRequest(kind: Request['kind'], wire: Buffer): Request {
  const bytes = wire.byteLength
  try {
    // A name of a few bytes takes many times as much once it is decoded.
    if (bytes + fieldsOf(wire) * nameOverheadBytes > mostNameBytes) throw tooManyNames()
    return kind === 'delta'
      ? { kind, message: fromBinary(discovery.DeltaDiscoveryRequestSchema, wire), bytes }
      : { kind, message: fromBinary(discovery.DiscoveryRequestSchema, wire), bytes }
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

function fieldsOf(wire: Uint8Array): number {
  const reader = new BinaryReader(wire)
  let count = 0
  for (; reader.pos < reader.len; count += 1) {
    const [field, type] = reader.tag()
    reader.skip(type, field)
  }
  return count
}
