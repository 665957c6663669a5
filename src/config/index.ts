// Config sources: from where configuration is kept (an API server, a file) into collections. A broken object never replaces a good one.
export { type FollowOptions, followInformer, type ObjectSink } from './kubernetes-source.ts'
export { defaultMeshConfig, type MeshConfig, type MeshConfigReading, readMeshConfig } from './mesh-config.ts'
export { loadSchemaProblems } from './schema-problems.ts'
