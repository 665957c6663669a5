// One node: its registration, its pods, its service rules and its HTTPS port. Runs inside the node's network namespace.
import { existsSync, readFileSync } from 'node:fs'
import { chmod, mkdir } from 'node:fs/promises'
import { cpus, totalmem } from 'node:os'
import { join } from 'node:path'
import { createKubeClient, loadConnection } from '../../kube/index.ts'
import { startServiceProxy } from '../services/service-proxy.ts'
import { cgroupRoot } from './cgroups.ts'
import { loadNetwork } from './cni.ts'
import { createEventRecorder } from './events.ts'
import { parseResolvConf, type ResolverConfig } from './name-files.ts'
import type { NodeContext } from './node-context.ts'
import { ObjectCache } from './object-cache.ts'
import { startRegistration } from './registration.ts'
import { startPodRuntime } from './runtime.ts'
import { startNodeServer } from './server.ts'
import { servingCertificate } from './serving-certificate.ts'
import { createTokenSource } from './tokens.ts'

export interface NodeOptions {
  readonly kubeconfig: string
  readonly name: string
  readonly ips: readonly string[]
  /** Addresses of this node's pods. */
  readonly podCidr: string
  /** Addresses of all nodes' pods. */
  readonly clusterCidr: string
  readonly serviceCidr: string
  /** The network that joins the nodes. */
  readonly nodeCidr: string
  readonly dnsIP: string
  readonly domain: string
  /** This node's own directory. */
  readonly directory: string
  /** Tells instances on one machine apart. */
  readonly instance: string
  readonly cniConfigDirectory: string
  readonly cniPath: readonly string[]
  /** Holds programs that containers find before those of the host. */
  readonly binDirectory: string
  readonly kubeletPort: number
  readonly version: string
  readonly log: (message: string) => void
}

const checkMs = 2000
const firstReportMs = 5000

/** Resolves when the node is registered and looks after its pods. Disposing leaves the pods' containers running. */
export async function startNode(options: NodeOptions): Promise<AsyncDisposable> {
  await using started = new AsyncDisposableStack()
  const { name, ips, directory, log } = options
  const podsDirectory = join(directory, 'pods')
  // Volumes of Secrets are in it: pods have them mounted, and nobody else is to read them by their path.
  await mkdir(podsDirectory, { recursive: true, mode: 0o700 })
  await chmod(podsDirectory, 0o700)
  const connection = await loadConnection({ kubeconfig: options.kubeconfig })
  const { ca } = await connection.tls()
  if (ca === undefined) throw new Error(`${options.kubeconfig} names no certificate authority`)
  const client = await createKubeClient({ kubeconfig: options.kubeconfig })
  started.defer(() => client.close())
  const registration = started.use(startRegistration(client, { ...options, kubeletPort: options.kubeletPort }, log))
  await registration.registered
  const proxy = started.use(
    startServiceProxy(
      client,
      name,
      {
        table: 'lateen-services',
        podCidr: options.clusterCidr,
        directCidrs: [options.clusterCidr, options.serviceCidr, options.nodeCidr],
      },
      log,
    ),
  )
  await proxy.ready
  const objects = started.use(new ObjectCache(client))
  const context: NodeContext = {
    client,
    nodeName: name,
    nodeIPs: ips,
    podsDirectory,
    sandbox: {
      cniConfigDirectory: options.cniConfigDirectory,
      cniPath: options.cniPath,
      namespacePrefix: `lateen-${options.instance}`,
    },
    cgroupRoot: cgroupRoot(options.instance),
    cluster: { dnsIP: options.dnsIP, domain: options.domain },
    hostResolver: readHostResolver,
    resources: { cpus: cpus().length, memoryBytes: totalmem() },
    events: createEventRecorder(client, name, 'kubelet', log),
    objects,
    tokens: createTokenSource(client),
    services: () => proxy.services.list(),
    path: `${options.binDirectory}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin`,
    log,
  }
  const runtime = started.use(startPodRuntime(context))
  await runtime.ready
  const serving = await servingCertificate(client, { name, ips }, directory, ca)
  started.use(
    await startNodeServer({
      ips,
      port: options.kubeletPort,
      serving,
      clientCa: ca,
      runtime,
      healthy: () => true,
    }),
  )
  const check = async () => {
    const network = await loadNetwork(options.cniConfigDirectory)
    if (network === undefined) registration.setReady(false, `no network configuration in ${options.cniConfigDirectory}`)
    else registration.setReady(true, 'the node is ready')
  }
  const timeout = AbortSignal.timeout(firstReportMs)
  await Promise.race([runtime.reported, new Promise((resolve) => timeout.addEventListener('abort', resolve))])
  await check()
  const timer = setInterval(() => void check().catch((error: Error) => log(error.message)), checkMs)
  started.defer(() => clearInterval(timer))
  return started.move()
}

/** The host's resolvers; where it runs a resolver on a loopback address, those behind it. */
export function readHostResolver(): ResolverConfig {
  const files = ['/etc/resolv.conf', '/run/systemd/resolve/resolv.conf']
  for (const file of files) {
    if (!existsSync(file)) continue
    const config = parseResolvConf(readFileSync(file, 'utf8'))
    const nameservers = config.nameservers.filter((server) => !server.startsWith('127.') && server !== '::1')
    if (nameservers.length > 0) return { ...config, nameservers }
  }
  return { nameservers: [], search: [], options: [] }
}
