// Notices that the control plane puts the pods of this node on another network than this proxy was told to be on.
import type { ZtunnelConfig } from './config/index.ts'
import type { MeshState } from './state/index.ts'

/**
 * Warns once of each network that a workload of this node has and that is not ours: peers on other networks then take this proxy's
 * connections for others than they are. Without a node name nothing is known to be of this node. Returns the function that ends it.
 */
export function warnOfOtherNetworks(
  state: Pick<MeshState, 'subscribeLocal'>,
  { network, node }: Pick<ZtunnelConfig, 'network' | 'node'>,
  warn: (message: string) => void,
): () => void {
  if (node === undefined) return () => undefined
  const warned = new Set<string>()
  return state.subscribeLocal((changes) => {
    for (const { new: workload } of changes) {
      if (workload === undefined || workload.network === network || warned.has(workload.network)) continue
      warned.add(workload.network)
      warn(
        `${workload.uid} of this node is on network '${workload.network}', this proxy on '${network}': set NETWORK to what the control plane says`,
      )
    }
  })
}
