// The xDS protocol, delta and state-of-the-world: server and client over gRPC, one piece of code for every type.
export type * from './types.ts'
