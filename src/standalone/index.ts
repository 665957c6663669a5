// The mesh on one machine: nodes as network namespaces, pods as processes, and the supervision of everything.
// In: manifests and a state directory. Out: running processes, an API server's kubeconfig, and on `down` nothing.

export { runPtpPlugin } from './cni-ptp/plugin.ts'
export { upDetached } from './detach.ts'
export { runDns } from './dns/run-dns.ts'
export { type DownOptions, down } from './down.ts'
export { StandaloneError } from './error.ts'
export type { Instance } from './instance.ts'
export { mostNodes } from './network/plan.ts'
export { type NodeOptions, startNode } from './node/start-node.ts'
export { instancePaths } from './paths.ts'
export { type StatusReport, status } from './status.ts'
export { type UpOptions, up } from './up.ts'
export { reportSampleCheck } from './up-check.ts'
