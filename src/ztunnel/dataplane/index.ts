// The data plane of the node proxy: sockets in pods' namespaces, tunnels, the node agent's protocol. It carries out decisions and makes none.
export { ConnectionError } from './errors.ts'
export { checkPortsAreFree } from './free-ports.ts'
export { createHostnameResolver } from './hostnames.ts'
export { type PodProxy, type PodProxyOptions, startPodProxy } from './pod-proxy.ts'
export { createPods, type PodChange, type PodState, type Pods, ZdsProtocolError } from './pods.ts'
export type {
  DataPlaneOptions,
  DataPlaneServices,
  DnsAnswerer,
  DnsClient,
  LiveConnection,
} from './types.ts'
export { followNodeAgent } from './zds-client.ts'
