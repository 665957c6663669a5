// gRPC ports whose connections are known: grpc-js serves the calls, and what it tells nobody is told here. In: services; out: a port, and
// who is at the other end of a call.
export type { CallTransport } from './call-transport.ts'
export {
  type ConnectionEnd,
  type ConnectionLimits,
  createConnections,
  type GrpcConnection,
  type GrpcConnections,
} from './connections.ts'
export { type GrpcPort, type GrpcPortOptions, openGrpcPort, type TlsOffer } from './port.ts'
