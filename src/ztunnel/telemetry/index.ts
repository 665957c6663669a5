// What the node proxy tells of its connections: access log, metrics, error texts.
export {
  type ConnectionFailure,
  type ConnectionReports,
  type ConnectionReportsOptions,
  createConnectionReports,
  type OpenConnection,
} from './connections.ts'
export { errorTexts } from './error-texts.ts'
export type { ConnectionFacts, KnownWorkload, Reporter, ResponseFlag } from './facts.ts'
export { peerOf } from './facts.ts'
export { known, sourceLabels, trafficLabels } from './labels.ts'
export { registerMeshMemoryMetrics } from './mesh-memory.ts'
export { type BuildFacts, createZtunnelMetrics, registerBuildMetric, type ZtunnelMetrics } from './metrics.ts'
