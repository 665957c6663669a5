// The node proxy's state: what it knows of the mesh, where that comes from, and how to ask.
export {
  canonicalIp,
  formatAddress,
  ipFamily,
  ipFromBytes,
  ipToBytes,
  isLoopback,
  parseSocketAddress,
} from './address.ts'
export { dumpLocalContent, dumpPolicy, dumpState, type StateDump } from './dump.ts'
export type { EndpointList } from './endpoint-list.ts'
export { StateError } from './errors.ts'
export type { MeshFollower, MeshPublication, MeshSignal, WaitOptions } from './follower.ts'
export { unknownLocalWorkload } from './following.ts'
export { type LocalContent, parseLocalFile, readLocalContent } from './local-file.ts'
export { type MeshReader, openMeshReader } from './open-reader.ts'
export type { PolicyFacts } from './policy-conditions.ts'
export {
  createMeshState,
  type MeshChange,
  type MeshMemory,
  type MeshState,
  type MeshStateOptions,
  type MeshUpdate,
} from './store.ts'
export { type ApplicablePolicies, type MeshView, policyKey, serviceKey, usableEndpoints } from './view.ts'
export type { Replaced } from './write-mesh.ts'
export { addressTypeUrl, authorizationTypeUrl, createDeltaReceiver } from './xds.ts'
