// `lateen remote-clusters`: which clusters each control plane reads, and whether it has read them.
import { Command, Option } from 'commander'
import { stringify } from 'yaml'
import { withConnectionOptions } from './connection.ts'
import { type ControlPlaneOptions, pagesOfControlPlanes, withControlPlaneOptions } from './control-plane-pods.ts'
import { type ClusterOfPage, type ClusterOfPod, remoteClustersTable } from './remote-clusters-table.ts'

interface ClustersOptions extends ControlPlaneOptions {
  readonly output: 'table' | 'json' | 'yaml'
}

export function create(): Command {
  const command = withControlPlaneOptions(
    new Command('remote-clusters').description('Show the clusters that each control plane reads.'),
  ).addOption(new Option('-o, --output <format>', 'how to print').choices(['table', 'json', 'yaml']).default('table'))
  return withConnectionOptions(command, 'not used: clusters have no namespace').action(
    async (options: ClustersOptions) => {
      const pages = await pagesOfControlPlanes(options, '/debug/clusterz')
      const clusters = pages.flatMap(({ istiod, revision, page }) =>
        ((page ?? []) as readonly ClusterOfPage[]).map((cluster) => ({ ...cluster, istiod, revision })),
      )
      process.stdout.write(print(clusters, options))
    },
  )
}

function print(clusters: readonly ClusterOfPod[], { output }: ClustersOptions): string {
  switch (output) {
    case 'json':
      return `${JSON.stringify(clusters, undefined, 4)}\n`
    case 'yaml':
      return stringify(clusters)
    case 'table':
      return remoteClustersTable(clusters)
  }
}
