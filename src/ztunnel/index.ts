// The L4 node proxy: carries the TCP connections of meshed pods in tunnels, and lets in what policies allow. In: the mesh
// (xDS or a local file), certificates, pods of the node; out: sockets in pods' namespaces, logs, metrics.
export { formatBuildInfo, type VersionFacts } from './admin/index.ts'
export { ConfigError, loadConfig, processInputs, type ZtunnelConfig } from './config/index.ts'
export { collectWhenIdle, trimWhenIdle } from './idle-memory.ts'
export { runZtunnel } from './process.ts'
