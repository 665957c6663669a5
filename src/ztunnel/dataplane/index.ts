// The data plane of the node proxy: sockets in pods' namespaces and tunnels. It carries out decisions and makes none.
export { ConnectionError } from './errors.ts'
export { createHostnameResolver } from './hostnames.ts'
export { type PodProxy, type PodProxyOptions, startPodProxy } from './pod-proxy.ts'
export type {
  DataPlaneOptions,
  DataPlaneServices,
  DnsAnswerer,
  DnsClient,
  LiveConnection,
} from './types.ts'
