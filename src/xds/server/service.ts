// The gRPC description of the aggregated discovery service. Requests are decoded; responses are bytes already.
import { fromBinary, toBinary } from '@bufbuild/protobuf'
import type { ServerDuplexStream, ServiceDefinition } from '@grpc/grpc-js'
import { discovery } from '../../proto/index.ts'

export type DeltaCall = ServerDuplexStream<discovery.DeltaDiscoveryRequest, Buffer>
export type SotwCall = ServerDuplexStream<discovery.DiscoveryRequest, Buffer>

const service = '/envoy.service.discovery.v3.AggregatedDiscoveryService'
const asIs = (message: Buffer): Buffer => message

/** `received` is told the size of each request. */
export function discoveryServiceOf(received: (bytes: number) => void): ServiceDefinition {
  const counted = (bytes: Buffer): Buffer => {
    received(bytes.byteLength)
    return bytes
  }
  return {
    DeltaAggregatedResources: {
      path: `${service}/DeltaAggregatedResources`,
      requestStream: true,
      responseStream: true,
      requestSerialize: (request: discovery.DeltaDiscoveryRequest) =>
        Buffer.from(toBinary(discovery.DeltaDiscoveryRequestSchema, request)),
      requestDeserialize: (bytes: Buffer) => fromBinary(discovery.DeltaDiscoveryRequestSchema, counted(bytes)),
      responseSerialize: asIs,
      responseDeserialize: asIs,
    },
    StreamAggregatedResources: {
      path: `${service}/StreamAggregatedResources`,
      requestStream: true,
      responseStream: true,
      requestSerialize: (request: discovery.DiscoveryRequest) =>
        Buffer.from(toBinary(discovery.DiscoveryRequestSchema, request)),
      requestDeserialize: (bytes: Buffer) => fromBinary(discovery.DiscoveryRequestSchema, counted(bytes)),
      responseSerialize: asIs,
      responseDeserialize: asIs,
    },
  }
}
