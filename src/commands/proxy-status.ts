// `lateen proxy-status`: which proxies are connected to the control plane, and whether they have what it sent them.
import { Command, Option } from 'commander'
import { stringify } from 'yaml'
import { withConnectionOptions } from './connection.ts'
import { type ControlPlaneOptions, pagesOfControlPlanes, withControlPlaneOptions } from './control-plane-pods.ts'
import { type ProxyOfPod, type ProxySync, proxyStatusTable, verboseProxyStatusTable } from './proxy-status-table.ts'

interface StatusOptions extends ControlPlaneOptions {
  readonly output: 'table' | 'json' | 'yaml'
  readonly verbosity: string
}

export function create(): Command {
  const command = withControlPlaneOptions(
    new Command('proxy-status')
      .alias('ps')
      .description('Show the proxies of the mesh and whether they have the configuration they were sent.'),
  )
    .option('-v, --verbosity <level>', '1: the state of each type', '0')
    .addOption(new Option('-o, --output <format>', 'how to print').choices(['table', 'json', 'yaml']).default('table'))
  return withConnectionOptions(command, 'only proxies of this namespace').action(async (options: StatusOptions) => {
    process.stdout.write(print(await proxiesOf(options), options))
  })
}

async function proxiesOf(options: StatusOptions): Promise<readonly ProxyOfPod[]> {
  const query = options.namespace === undefined ? '' : `?namespace=${encodeURIComponent(options.namespace)}`
  const pages = await pagesOfControlPlanes(options, `/debug/syncz${query}`)
  return pages.flatMap(({ istiod, page }) =>
    ((page ?? []) as readonly ProxySync[]).map((proxy) => ({ ...proxy, istiod })),
  )
}

function print(proxies: readonly ProxyOfPod[], { output, verbosity }: StatusOptions): string {
  switch (output) {
    case 'json':
      return `${JSON.stringify(proxies, undefined, 4)}\n`
    case 'yaml':
      return stringify(proxies)
    case 'table':
      return verbosity === '0' ? proxyStatusTable(proxies) : verboseProxyStatusTable(proxies, new Date())
  }
}
