// The CNI configuration that a node begins with. Each pod gets its own link to the node, without a bridge: every packet
// between pods is then routed by the node, and service addresses work between pods of one node whatever the bridge
// netfilter module does.
import { existsSync } from 'node:fs'
import { chmod } from 'node:fs/promises'
import { join } from 'node:path'
import { writeFileAtomic } from './files.ts'
import type { NodePlan } from './network/plan.ts'
import type { InstancePaths } from './paths.ts'

const hostDirectories = ['/usr/lib/cni', '/opt/cni/bin']

/** Where the node looks for plugins, in this order. */
export function pluginDirectories(paths: InstancePaths, node: NodePlan): string[] {
  return [join(paths.nodes, node.name, 'cni', 'bin'), ...hostDirectories]
}

/** Debian's plugins `ptp` and `host-local` where they are installed, our own with the same configuration elsewhere. */
export async function nodeNetworkConfig(paths: InstancePaths, node: NodePlan): Promise<string> {
  const installed = ['ptp', 'host-local'].every((plugin) =>
    hostDirectories.some((directory) => existsSync(join(directory, plugin))),
  )
  if (!installed) await installOwnPlugin(paths, node)
  const plugin = {
    type: installed ? 'ptp' : ownPlugin,
    ipMasq: false,
    ipam: {
      type: 'host-local',
      dataDir: join(paths.nodes, node.name, 'cni', 'addresses'),
      ranges: [[{ subnet: node.podCidr }]],
      routes: [{ dst: '0.0.0.0/0' }],
    },
  }
  return `${JSON.stringify({ cniVersion: '1.0.0', name: 'lateen', plugins: [plugin] }, null, 2)}\n`
}

const ownPlugin = 'lateen-ptp'

async function installOwnPlugin(paths: InstancePaths, node: NodePlan): Promise<void> {
  const file = join(paths.nodes, node.name, 'cni', 'bin', ownPlugin)
  await writeFileAtomic(file, `#!/bin/sh\nexec '${join(paths.bin, 'lateen')}' cni-ptp\n`, 0o755)
  await chmod(file, 0o755)
}
