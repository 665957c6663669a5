// The gRPC description of the aggregated discovery service. Requests are decoded; responses are bytes already.
import { type DescMessage, fromBinary, type MessageShape, toBinary } from '@bufbuild/protobuf'
import type { ServerDuplexStream, ServiceDefinition } from '@grpc/grpc-js'
import { discovery } from '../../proto/index.ts'

/** A request, with what it took on the wire. */
export interface Received<M> {
  readonly message: M
  readonly bytes: number
}

export type DeltaCall = ServerDuplexStream<Received<discovery.DeltaDiscoveryRequest>, Buffer>
export type SotwCall = ServerDuplexStream<Received<discovery.DiscoveryRequest>, Buffer>
export type AnyCall = DeltaCall | SotwCall

const service = '/envoy.service.discovery.v3.AggregatedDiscoveryService'
const asIs = (message: Buffer): Buffer => message

/** `received` is told the size of each request. */
export function discoveryServiceOf(received: (bytes: number) => void): ServiceDefinition {
  const receive = <D extends DescMessage>(schema: D, bytes: Buffer): Received<MessageShape<D>> => {
    received(bytes.byteLength)
    return { message: fromBinary(schema, bytes), bytes: bytes.byteLength }
  }
  return {
    DeltaAggregatedResources: {
      path: `${service}/DeltaAggregatedResources`,
      requestStream: true,
      responseStream: true,
      requestSerialize: (request: discovery.DeltaDiscoveryRequest) =>
        Buffer.from(toBinary(discovery.DeltaDiscoveryRequestSchema, request)),
      requestDeserialize: (bytes: Buffer) => receive(discovery.DeltaDiscoveryRequestSchema, bytes),
      responseSerialize: asIs,
      responseDeserialize: asIs,
    },
    StreamAggregatedResources: {
      path: `${service}/StreamAggregatedResources`,
      requestStream: true,
      responseStream: true,
      requestSerialize: (request: discovery.DiscoveryRequest) =>
        Buffer.from(toBinary(discovery.DiscoveryRequestSchema, request)),
      requestDeserialize: (bytes: Buffer) => receive(discovery.DiscoveryRequestSchema, bytes),
      responseSerialize: asIs,
      responseDeserialize: asIs,
    },
  }
}
