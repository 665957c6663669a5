// `lateen node`: one node of the mesh on this machine (the roles of kubelet and kube-proxy), inside the node's network namespace.
import { Command } from 'commander'
import { createLogging } from '../observability/index.ts'
import { startNode } from '../standalone/index.ts'
import { packageVersion } from './version.ts'

interface Flags {
  readonly kubeconfig: string
  readonly name: string
  readonly stateDir: string
  readonly instance: string
  readonly nodeIp: string
  readonly podCidr: string
  readonly clusterCidr: string
  readonly serviceCidr: string
  readonly nodeCidr: string
  readonly clusterDns: string
  readonly clusterDomain: string
  readonly cniConfDir: string
  readonly cniBinDir: readonly string[]
  readonly binDir: string
  readonly port: string
}

export function create(): Command {
  return new Command('node')
    .description('Runs the pods of one node and gives service addresses their meaning there.')
    .requiredOption('--kubeconfig <file>', 'API server to work for')
    .requiredOption('--name <name>', "the node's name")
    .requiredOption('--state-dir <dir>', "the node's own directory")
    .requiredOption('--instance <id>', 'tells the instances on this machine apart')
    .requiredOption('--node-ip <ip>', 'address of the node')
    .requiredOption('--pod-cidr <cidr>', "addresses of this node's pods")
    .requiredOption('--cluster-cidr <cidr>', "addresses of all nodes' pods")
    .requiredOption('--service-cidr <cidr>', 'addresses of services')
    .requiredOption('--node-cidr <cidr>', 'addresses of the nodes')
    .requiredOption('--cluster-dns <ip>', 'address of the cluster DNS service')
    .option('--cluster-domain <domain>', 'DNS domain of the cluster', 'cluster.local')
    .requiredOption('--cni-conf-dir <dir>', 'network configuration directory')
    .requiredOption('--cni-bin-dir <dir...>', 'directories of CNI plugins')
    .requiredOption('--bin-dir <dir>', 'programs that containers find before those of the host')
    .option('--port <port>', 'HTTPS port', '10250')
    .action(run)
}

async function run(flags: Flags): Promise<void> {
  const logging = createLogging()
  const scope = logging.scope('node')
  const node = await startNode({
    kubeconfig: flags.kubeconfig,
    name: flags.name,
    ips: [flags.nodeIp],
    podCidr: flags.podCidr,
    clusterCidr: flags.clusterCidr,
    serviceCidr: flags.serviceCidr,
    nodeCidr: flags.nodeCidr,
    dnsIP: flags.clusterDns,
    domain: flags.clusterDomain,
    directory: flags.stateDir,
    instance: flags.instance,
    cniConfigDirectory: flags.cniConfDir,
    cniPath: flags.cniBinDir,
    binDirectory: flags.binDir,
    kubeletPort: Number(flags.port),
    version: `v${packageVersion()}`,
    log: (message) => scope.info(message),
  })
  scope.info(`node ${flags.name} is ready`)
  const { promise, resolve } = Promise.withResolvers<void>()
  process.once('SIGINT', () => resolve())
  process.once('SIGTERM', () => resolve())
  await promise
  await node[Symbol.asyncDispose]()
  await logging.flush()
}
