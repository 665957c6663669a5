// One running instance: network, supervised processes, system pods. Brought up step by step, taken down as a whole.
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { type KubeObject, resources } from '../api/index.ts'
import { createKubeClient, type KubeClient } from '../kube/index.ts'
import { type ReservedPort, reserveApiPort } from './api-port.ts'
import { endLeftProcesses, removeInstance } from './clean.ts'
import { isReady, unreadiness, waitForApi, waitUntil } from './cluster-wait.ts'
import { writeCredentials } from './credentials.ts'
import { explainFailure } from './explain-pods.ts'
import { lastLines, readIfThere, readJson, writeFileAtomic } from './files.ts'
import { waitForName } from './instance-lock.ts'
import { createNetwork, type HostChanges, usedRanges } from './network/host.ts'
import { instanceId, type NetworkPlan, type NodePlan, planNetwork } from './network/plan.ts'
import { nodeNetworkConfig, pluginDirectories } from './node-network-config.ts'
import { type InstancePaths, networkFile, ownCommand } from './paths.ts'
import { isRootless, serveApiSocket } from './rootless.ts'
import { Supervisor } from './supervisor/supervisor.ts'
import { applySystem } from './system/apply.ts'
import { systemObjects } from './system/manifests.ts'

export interface InstanceOptions {
  readonly paths: InstancePaths
  readonly nodes: number
  readonly mesh: boolean
  /** The roots of the mesh are handed out in a ClusterTrustBundle. */
  readonly trustBundle: boolean
  readonly signal: AbortSignal
  /** A step begins. */
  readonly step: (name: string) => void
  /** Something worth knowing happens within the step. */
  readonly note: (message: string) => void
}

export interface Instance {
  readonly client: KubeClient
  readonly plan: NetworkPlan
  readonly supervisor: Supervisor
  /** Ends everything; the state of the API stays for the next time. */
  stop(): Promise<void>
}

const readyMs = 120_000
const apiMs = 60_000
const startAttempts = 4
const domain = 'cluster.local'
const systemNamespaces: ReadonlySet<string> = new Set(['kube-system', 'istio-system'])

/** On failure everything that was started is ended and removed again. */
export async function startInstance(options: InstanceOptions): Promise<Instance> {
  const { paths, step, note, signal } = options
  // Without root, what an earlier time left runs in namespaces that cannot be entered again.
  if (isRootless()) await removeInstance(paths)
  else await endLeftProcesses(paths, 5000)
  const startedAt = Math.floor(Date.now() / 1000) * 1000
  const supervisor = new Supervisor({
    stateDir: paths.stateDir,
    environment: { LATEEN_INSTANCE: paths.instance },
    note,
  })
  let client: KubeClient | undefined
  let socket: AsyncDisposable | undefined
  let reserved: ReservedPort | undefined
  const stop = async () => {
    await client?.close()
    await socket?.[Symbol.asyncDispose]()
    await supervisor.stop()
    await removeInstance(paths)
    await reserved?.[Symbol.asyncDispose]()
  }
  try {
    step('network')
    const plan = await prepareNetwork(options)
    step('API server')
    reserved = await reserveApiPort(paths.stateDir)
    const { port } = reserved
    await supervisor.start({
      name: 'apiserver',
      argv: [
        ...ownCommand(),
        'apiserver',
        ...['--state-dir', paths.stateDir, '--service-cidr', plan.serviceCidr, '--advertise-address', plan.hostIP],
        ...['--listen', `127.0.0.1:${port}`, '--listen', `${plan.hostIP}:${port}`],
      ],
    })
    if (isRootless()) socket = await serveApiSocket(paths.stateDir, port)
    client = await waitForApi(() => createKubeClient({ kubeconfig: paths.kubeconfig }), {
      signal,
      timeoutMs: apiMs,
      isHopeless: () => supervisor.restarts('apiserver') >= startAttempts,
      why: async () => {
        const log = supervisor.logFile('apiserver')
        return `the end of its log, ${log}:\n${(await lastLines(log)) || '(nothing)'}`
      },
    })
    step('controllers')
    await startControllersProcess(supervisor, paths, client)
    await applySystem(
      client,
      systemObjects({
        lateen: ownCommand(),
        nodesDirectory: paths.nodes,
        runDirectory: paths.run,
        dnsIP: plan.dnsIP,
        domain,
        mesh: options.mesh,
        trustBundle: options.trustBundle,
      }),
    )
    step(`nodes: ${plan.nodes.map((node) => node.name).join(', ')}`)
    await removeOtherNodes(client, plan)
    for (const node of plan.nodes) await startNodeProcess(supervisor, paths, client, plan, node)
    await waitUntil(
      client,
      ({ nodes }) =>
        plan.nodes.flatMap(({ name }) =>
          nodes.some((node) => node.metadata.name === name && isReady(node, startedAt)) ? [] : [`node ${name}`],
        ),
      { timeoutMs: readyMs, signal, note },
    )
    step(options.mesh ? 'control plane, node agents, node proxies, DNS' : 'DNS')
    await waitForSystemPods(client, options, plan)
    return { client, plan, supervisor, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

async function prepareNetwork({ paths, nodes, signal }: InstanceOptions): Promise<NetworkPlan> {
  // Ranges are free until somebody takes them: one at a time chooses and takes.
  await using _choosing = await waitForName('lateen-network', signal)
  const file = networkFile(paths.stateDir)
  const before = await readJson<NetworkPlan>(file)
  const plan = planNetwork(paths.stateDir, nodes, await usedRanges(`lateen-${instanceId(paths.stateDir)}`), before)
  await writeFileAtomic(file, JSON.stringify(plan, null, 2))
  const changes = await createNetwork(plan)
  const known = (await readJson<HostChanges>(join(paths.stateDir, 'host-changes.json'))) ?? {}
  await writeFileAtomic(join(paths.stateDir, 'host-changes.json'), JSON.stringify({ ...changes, ...known }))
  const [program = '', ...words] = ownCommand()
  const wrapper = `#!/bin/sh\nexec ${[program, ...words].map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(' ')} "$@"\n`
  await writeFileAtomic(join(paths.bin, 'lateen'), wrapper, 0o755)
  for (const node of plan.nodes) {
    const config = join(paths.nodes, node.name, 'cni', 'net.d', '10-lateen.conflist')
    await mkdir(join(paths.nodes, node.name, 'cni', 'bin'), { recursive: true })
    await mkdir(join(paths.run, node.name, 'istio-cni'), { recursive: true })
    if ((await readIfThere(config)) === undefined) {
      await writeFileAtomic(config, await nodeNetworkConfig(paths, node), 0o600)
    }
  }
  return plan
}

async function startControllersProcess(
  supervisor: Supervisor,
  paths: InstancePaths,
  client: KubeClient,
): Promise<void> {
  const credentialsOf = async (kind: 'controllers' | 'scheduler'): Promise<string> => {
    const path = join(paths.credentials, kind)
    await writeCredentials({ client, administrator: paths.kubeconfig, part: { kind }, path, host: '127.0.0.1' })
    return path
  }
  const [controllers, scheduler] = await Promise.all([credentialsOf('controllers'), credentialsOf('scheduler')])
  await supervisor.start({
    name: 'controllers',
    argv: [...ownCommand(), 'controllers', '--kubeconfig', controllers, '--scheduler-kubeconfig', scheduler],
  })
}

async function startNodeProcess(
  supervisor: Supervisor,
  paths: InstancePaths,
  client: KubeClient,
  plan: NetworkPlan,
  node: NodePlan,
): Promise<void> {
  const directory = join(paths.nodes, node.name)
  const kubeconfig = join(directory, 'kubeconfig')
  await writeCredentials({
    client,
    administrator: paths.kubeconfig,
    part: { kind: 'node', name: node.name },
    path: kubeconfig,
    // The nodes' localhost is not the host's.
    host: plan.hostIP,
  })
  await supervisor.start({
    name: node.name,
    argv: [
      'nsenter',
      `--net=/run/netns/${node.namespace}`,
      '--',
      ...ownCommand(),
      'node',
      ...['--kubeconfig', kubeconfig, '--name', node.name],
      ...['--state-dir', directory, '--instance', plan.instance],
      ...['--node-ip', node.ip, '--pod-cidr', node.podCidr, '--cluster-cidr', plan.clusterCidr],
      ...['--service-cidr', plan.serviceCidr, '--node-cidr', plan.nodeCidr, '--cluster-dns', plan.dnsIP],
      ...['--cluster-domain', domain, '--cni-conf-dir', join(directory, 'cni', 'net.d'), '--bin-dir', paths.bin],
      ...['--cni-bin-dir', ...pluginDirectories(paths, node)],
    ],
  })
}

/** Nodes of an earlier time with more nodes: their pods are to be placed anew. */
async function removeOtherNodes(client: KubeClient, plan: NetworkPlan): Promise<void> {
  const { items } = await client.list<KubeObject>(resources.nodes)
  for (const { metadata } of items) {
    if (plan.nodes.some((node) => node.name === metadata.name)) continue
    const pods = await client.list(resources.pods, { fieldSelector: `spec.nodeName=${metadata.name}` })
    for (const pod of pods.items) {
      const key = { namespace: pod.metadata.namespace ?? '', name: pod.metadata.name }
      await client.delete(resources.pods, key, { gracePeriodSeconds: 0 })
    }
    await client.delete(resources.nodes, { name: metadata.name })
  }
}

async function waitForSystemPods(client: KubeClient, options: InstanceOptions, plan: NetworkPlan): Promise<void> {
  const expected: [string, string, number][] = [
    ['kube-system', 'cluster-dns-', 1],
    ...(options.mesh
      ? ([
          ['istio-system', 'istiod-', 1],
          ['istio-system', 'istio-cni-node-', plan.nodes.length],
          ['istio-system', 'ztunnel-', plan.nodes.length],
        ] satisfies [string, string, number][])
      : []),
  ]
  await waitUntil(
    client,
    ({ pods }) =>
      expected.flatMap(([namespace, prefix, count]) => {
        const ours = pods.filter(
          ({ metadata }) =>
            metadata.namespace === namespace && metadata.name.startsWith(prefix) && !metadata.deletionTimestamp,
        )
        const missing = ours.length < count ? [`${namespace}/${prefix}* (${ours.length} of ${count} created)`] : []
        return [...missing, ...ours.map(unreadiness).filter((why) => why !== undefined)]
      }),
    { timeoutMs: readyMs, signal: options.signal, note: options.note },
  ).catch((error: unknown) => explainFailure(error, client, systemNamespaces))
}
