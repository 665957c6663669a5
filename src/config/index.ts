// Config sources: from where configuration is kept (API servers, files, other control planes, memory) into collections.
// A broken object never replaces a good one.
export { aggregateSources } from './aggregate.ts'
export { type FileSource, type FileSourceOptions, openFileSource } from './file-source.ts'
export { type FollowedKind, type FollowOptions, followInformer, type ObjectSink } from './follow.ts'
export { apiTypeUrl, decodeIstioResource, encodeIstioResource } from './istio-resource.ts'
export { ConfigStoreError, createMemorySource, type MemorySource } from './memory-source.ts'
export {
  type ConfigSourceSpec,
  defaultMeshConfig,
  type MeshConfig,
  type MeshConfigReading,
  mergeMeshConfig,
  problemOfLayer,
  readMeshConfig,
  readTrustDomain,
} from './mesh-config.ts'
export { effectiveMeshConfig, encodeMeshConfig, meshConfigTypeUrl } from './mesh-config-export.ts'
export { type MeshNetworks, type MeshNetworksReading, readMeshNetworks, repeatedRegistries } from './mesh-networks.ts'
export {
  createProblemLog,
  type FieldProblem,
  type ObjectProblems,
  type ProblemLog,
  problemKey,
  problemText,
} from './problems.ts'
export { type FindProblems, loadSchemaProblems } from './schema-problems.ts'
export type { ConfigSource } from './source.ts'
export { createSwitchingSource, type SwitchingSource } from './switching-source.ts'
export { exportedKind } from './xds-export.ts'
export { openXdsSource, type XdsSourceOptions } from './xds-source.ts'
