// The objects that every instance begins with: namespaces, rights of nodes, cluster DNS, control plane, node agent and node proxy.
import type { KubeObject } from '../../api/index.ts'
import { controlPlane } from './control-plane.ts'
import { clusterDns } from './dns.ts'
import { nodeAgent } from './node-agent.ts'
import { nodeProxy } from './node-proxy.ts'
import { object } from './objects.ts'
import { nodeRights } from './rights.ts'

export interface SystemSettings {
  /** How a pod runs this program: a node executable and the script. */
  readonly lateen: readonly string[]
  /** On the host, the directory that holds a directory for each node, by name. */
  readonly nodesDirectory: string
  /** On the host, the directory for sockets, with a directory for each node, by name; short, since socket paths are. */
  readonly runDirectory: string
  readonly dnsIP: string
  readonly domain: string
  /** Without the mesh there are only pods and services. */
  readonly mesh: boolean
  /** The roots of the mesh are handed out in a ClusterTrustBundle instead of a ConfigMap in each namespace. */
  readonly trustBundle: boolean
}

/** In the order in which they are to be applied. */
export function systemObjects(settings: SystemSettings): KubeObject[] {
  return [
    object('v1', 'Namespace', { name: 'kube-node-lease' }),
    ...nodeRights(),
    ...clusterDns(settings),
    ...(settings.mesh
      ? [
          object('v1', 'Namespace', { name: 'istio-system' }),
          ...controlPlane(settings),
          ...nodeAgent(settings),
          ...nodeProxy(settings),
        ]
      : []),
  ]
}
