// `lateen proxy-status`: which proxies are connected to the control plane, and whether they have what it sent them.
import { Command, Option } from 'commander'
import { stringify } from 'yaml'
import { type ConnectionOptions, connectionOf, UsageError, withConnectionOptions } from './connection.ts'
import { jsonFromPod, portOf, runningPods, withClientOf } from './pod-request.ts'
import { type ProxyOfPod, type ProxySync, proxyStatusTable, verboseProxyStatusTable } from './proxy-status-table.ts'

interface StatusOptions extends ConnectionOptions {
  readonly istioNamespace: string
  readonly revision?: string
  readonly debugPort: string
  readonly output: 'table' | 'json' | 'yaml'
  readonly verbosity: string
}

export function create(): Command {
  const command = new Command('proxy-status')
    .alias('ps')
    .description('Show the proxies of the mesh and whether they have the configuration they were sent.')
    .option('-i, --istioNamespace <name>', 'namespace of the control plane', 'istio-system')
    .option('-r, --revision <name>', 'only control planes of this revision')
    .option('--debug-port <port>', 'port of the control plane’s debug pages', '15014')
    .option('-v, --verbosity <level>', '1: the state of each type', '0')
    .addOption(new Option('-o, --output <format>', 'how to print').choices(['table', 'json', 'yaml']).default('table'))
  return withConnectionOptions(command).action(async (options: StatusOptions) => {
    process.stdout.write(print(await proxiesOf(options), options))
  })
}

async function proxiesOf(options: StatusOptions): Promise<readonly ProxyOfPod[]> {
  const connection = await connectionOf(options)
  const port = portOf('--debug-port', options.debugPort)
  const revision = options.revision === undefined ? '' : `,istio.io/rev=${options.revision}`
  const pods = await withClientOf(connection, (client) =>
    runningPods(client, options.istioNamespace, `app=istiod${revision}`),
  )
  if (pods.length === 0) {
    throw new UsageError(`no control plane runs in namespace ${options.istioNamespace}: give --istioNamespace`)
  }
  const query = options.namespace === undefined ? '' : `?namespace=${encodeURIComponent(options.namespace)}`
  const all = await Promise.all(
    pods.map(async (pod) => {
      const proxies = (await jsonFromPod(connection, pod, port, `/debug/syncz${query}`)) as readonly ProxySync[] | null
      return (proxies ?? []).map((proxy) => ({ ...proxy, istiod: pod.name }))
    }),
  )
  return all.flat()
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
