// `lateen ztunnel-config`: what a node proxy knows and does.
import { readFileSync } from 'node:fs'
import { Command, Option } from 'commander'
import { stringify } from 'yaml'
import { type ConnectionOptions, connectionOf, UsageError, withConnectionOptions } from './connection.ts'
import { jsonFromPod, type MeshPod, podOf, portOf, runningPods, splitPodName, withClientOf } from './pod-request.ts'
import { type DumpedPod, type DumpedWorkload, listOf, type ZtunnelDump } from './ztunnel-dump.ts'
import { certificateTable, connectionTable, policyTable, serviceTable, workloadTable } from './ztunnel-tables.ts'

interface Options extends ConnectionOptions {
  readonly file?: string
  readonly node?: string
  readonly istioNamespace: string
  readonly proxyAdminPort: string
  readonly output: 'short' | 'json' | 'yaml'
  readonly address?: string
  readonly workloadNamespace?: string
  readonly workloadNode?: string
  readonly serviceNamespace?: string
  readonly policyNamespace?: string
  readonly direction?: 'inbound' | 'outbound'
  readonly raw?: boolean
  readonly withHeaders?: boolean
}

/** A dump, and the workload it was asked for by, if it was. */
interface Found {
  readonly dump: ZtunnelDump
  readonly workload?: { readonly name: string; readonly namespace: string }
}

interface View {
  /** What is printed as JSON or YAML. */
  readonly items: unknown
  readonly table: string
}

const views = {
  workload: ({ dump, workload }, options) => {
    const { address, workloadNamespace, workloadNode } = options
    const items = listOf(dump.workloads).filter(
      (one) =>
        (workload === undefined || (one.name === workload.name && one.namespace === workload.namespace)) &&
        (address === undefined || hasAddress(one, address)) &&
        (workloadNamespace === undefined || one.namespace === workloadNamespace) &&
        (workloadNode === undefined || one.node === workloadNode),
    )
    return { items, table: workloadTable(items, dump) }
  },
  service: ({ dump }, { serviceNamespace }) => {
    const items = listOf(dump.services).filter(
      ({ namespace }) => serviceNamespace === undefined || namespace === serviceNamespace,
    )
    return { items, table: serviceTable(items, dump) }
  },
  policy: ({ dump }, { policyNamespace }) => {
    const items = listOf(dump.policies).filter(
      ({ namespace }) => policyNamespace === undefined || namespace === policyNamespace,
    )
    return { items, table: policyTable(items) }
  },
  certificate: ({ dump }) => {
    const items = listOf(dump.certificates)
    return { items, table: certificateTable(items, new Date()) }
  },
  connections: ({ dump, workload }, { direction, raw = false, workloadNamespace }) => {
    const items = Object.values(dump.workloadState ?? {}).filter(
      (one) => isPod(one, workload) && (workloadNamespace === undefined || one.info?.namespace === workloadNamespace),
    )
    const filter = { raw, ...(direction === undefined ? {} : { direction }) }
    return { items, table: connectionTable(items, dump, filter) }
  },
} as const satisfies Record<string, (found: Found, options: Options) => View>

type ViewName = keyof typeof views

const aliases: Readonly<Record<ViewName, readonly string[]>> = {
  workload: ['w', 'workloads'],
  service: ['s', 'svc', 'services'],
  policy: ['p', 'pol', 'policies'],
  certificate: ['cert', 'certs', 'certificates'],
  connections: ['cons'],
}

const summaries: Readonly<Record<ViewName, string>> = {
  workload: 'workloads it knows',
  service: 'services it knows',
  policy: 'policies it enforces',
  certificate: 'certificates it holds',
  connections: 'connections of its pods',
}

/** Every node proxy knows the same of the mesh, but each has its own of these. */
const ofOneProxy: ReadonlySet<ViewName> = new Set(['certificate', 'connections'])

export function create(): Command {
  const command = new Command('ztunnel-config')
    .alias('zc')
    .description('Show what a node proxy knows: workloads, services, policies, certificates, connections.')
  for (const name of Object.keys(views) as ViewName[]) {
    const sub = withTargetOptions(
      new Command(name).description(`Show the ${summaries[name]}.`).aliases([...aliases[name]]),
    )
    withFilters(sub, name).action(async (target: string | undefined, options: Options) => {
      const view = views[name](await find(target, options, ofOneProxy.has(name)), options)
      process.stdout.write(options.output === 'short' ? view.table : structured(view.items, options.output))
    })
    command.addCommand(sub)
  }
  const all = withTargetOptions(new Command('all').description('Show everything.'))
    .option('--with-headers', 'a line before each table')
    .action(async (target: string | undefined, options: Options) => {
      const found = await find(target, options, false)
      process.stdout.write(options.output === 'short' ? tables(found, options) : structured(found.dump, options.output))
    })
  return command.addCommand(all)
}

function withTargetOptions(command: Command): Command {
  return withConnectionOptions(command)
    .argument('[pod]', 'a node proxy, or a workload whose node proxy is asked: name[.namespace]')
    .option('-f, --file <file>', 'a dump in a file; - for standard input')
    .option('--node <name>', 'the proxy of this node')
    .option('-i, --istioNamespace <name>', 'namespace of the node proxies', 'istio-system')
    .option('--proxy-admin-port <port>', 'admin port of the proxy', '15000')
    .addOption(new Option('-o, --output <format>', 'how to print').choices(['short', 'json', 'yaml']).default('short'))
}

function withFilters(command: Command, name: ViewName): Command {
  switch (name) {
    case 'workload':
      return command
        .option('--address <ip>', 'only the workload with this address')
        .option('--workload-namespace <name>', 'only workloads of this namespace')
        .option('--workload-node <name>', 'only workloads of this node')
    case 'service':
      return command.option('--service-namespace <name>', 'only services of this namespace')
    case 'policy':
      return command.option('--policy-namespace <name>', 'only policies of this namespace')
    case 'connections':
      return command
        .addOption(new Option('--direction <direction>', 'only these').choices(['inbound', 'outbound']))
        .option('--workload-namespace <name>', 'only connections of this namespace')
        .option('--raw', 'addresses instead of names')
    case 'certificate':
      return command
  }
}

const headers: Readonly<Record<ViewName, string>> = {
  workload: 'WORKLOAD',
  service: 'SERVICE',
  policy: 'POLICY',
  certificate: 'SECRET',
  connections: 'CONNECTIONS',
}

function tables(found: Found, options: Options): string {
  return (Object.keys(views) as ViewName[])
    .map((name) => {
      const head = options.withHeaders === true ? `------ ${headers[name]} INFO ------\n` : ''
      return `${head}${views[name](found, options).table}`
    })
    .join('\n')
}

function structured(items: unknown, output: 'json' | 'yaml'): string {
  return output === 'json' ? `${JSON.stringify(items, undefined, 4)}\n` : stringify(items)
}

async function find(target: string | undefined, options: Options, needsOne: boolean): Promise<Found> {
  const given = [target, options.file, options.node].filter((one) => one !== undefined)
  if (given.length > 1) throw new UsageError('at most one of --file, --node, or pod name must be passed')
  if (options.file !== undefined) return { dump: parseDump(options.file) }
  const connection = await connectionOf(options)
  const port = portOf('--proxy-admin-port', options.proxyAdminPort)
  const { proxy, workload } = await withClientOf(connection, async (client) => {
    const proxies = await runningPods(client, options.istioNamespace, 'app=ztunnel')
    const ofNode = (node: string): MeshPod => {
      const found = proxies.find((one) => one.node === node)
      if (found === undefined) throw new UsageError(`no pods found: no node proxy runs on node ${node}`)
      return found
    }
    if (options.node !== undefined) return { proxy: ofNode(options.node) }
    if (target === undefined) return { proxy: anyOf(proxies, needsOne, options.istioNamespace) }
    const { name, namespace } = splitPodName(target, options.namespace ?? options.istioNamespace)
    const pod = await podOf(client, namespace, name)
    if (pod.labels.app === 'ztunnel') return { proxy: pod }
    if (pod.node === '') throw new UsageError(`pod ${name}.${namespace} is not scheduled to a node`)
    return { proxy: ofNode(pod.node), workload: { name, namespace } }
  })
  const dump = (await jsonFromPod(connection, proxy, port, '/config_dump')) as ZtunnelDump
  return { dump, ...(workload === undefined ? {} : { workload }) }
}

function anyOf(proxies: readonly MeshPod[], needsOne: boolean, namespace: string): MeshPod {
  const [first, second] = proxies
  if (first === undefined) throw new UsageError(`no node proxy runs in namespace ${namespace}: give --istioNamespace`)
  if (needsOne && second !== undefined) {
    const choices = proxies.map(({ name, node }) => `${name} (--node ${node})`).join(', ')
    throw new UsageError(`several node proxies run: name one of ${choices}, or a pod whose node proxy you mean`)
  }
  return first
}

function parseDump(file: string): ZtunnelDump {
  const text = readFileSync(file === '-' ? 0 : file, 'utf8')
  try {
    return JSON.parse(text) as ZtunnelDump
  } catch (cause) {
    throw new UsageError(`${file}: expected the JSON of a node proxy's config_dump (${(cause as Error).message})`)
  }
}

function hasAddress({ workloadIps = [], hostname }: DumpedWorkload, address: string): boolean {
  return workloadIps.includes(address) || hostname === address
}

function isPod({ info }: DumpedPod, workload: Found['workload']): boolean {
  return workload === undefined || (info?.name === workload.name && info.namespace === workload.namespace)
}
