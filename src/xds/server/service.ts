// The gRPC description of the aggregated discovery service. Messages are bytes on both ways.
import type { ServerDuplexStream, ServiceDefinition } from '@grpc/grpc-js'

export type AnyCall = ServerDuplexStream<Buffer, Buffer>

const service = '/envoy.service.discovery.v3.AggregatedDiscoveryService'
const asIs = (message: Buffer): Buffer => message

/** `received` is told the size of each request. */
export function discoveryServiceOf(received: (bytes: number) => void): ServiceDefinition {
  const method = {
    requestStream: true,
    responseStream: true,
    requestSerialize: asIs,
    requestDeserialize: (bytes: Buffer): Buffer => {
      received(bytes.byteLength)
      return bytes
    },
    responseSerialize: asIs,
    responseDeserialize: asIs,
  }
  return {
    DeltaAggregatedResources: { ...method, path: `${service}/DeltaAggregatedResources` },
    StreamAggregatedResources: { ...method, path: `${service}/StreamAggregatedResources` },
  }
}
