// The embedded Kubernetes-compatible API: HTTPS in, one SQLite file as its state.
// Comes in: a state directory, addresses, the range of cluster IPs. Goes out: a running server and an administrator's kubeconfig.
export { type EmbeddedApi, type EmbeddedApiOptions, startEmbeddedApi } from './assemble.ts'
export { ApiError } from './errors.ts'
