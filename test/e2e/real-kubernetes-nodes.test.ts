// The node agent against Kubernetes' own API server, with the rights of istio-cni alone: it enrols a pod, says so on it, and stays when it stops.
import assert from 'node:assert/strict'
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { closeSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { after, before, describe, test } from 'node:test'
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { type KubeObject, resources } from '../../src/api/index.ts'
import { connectSeqpacket } from '../../src/linux/index.ts'
import { zds } from '../../src/proto/index.ts'
import { createRunningPod } from '../support/cluster-objects.ts'
import { kubeApiServerIsMissing } from '../support/kube-apiserver.ts'
import { type Link, linkTo } from '../support/link.ts'
import { type MeshCluster, startMeshCluster } from '../support/mesh-cluster.ts'

const program = join(import.meta.dirname, '../../src/commands/main.ts')
const skip = process.getuid?.() === 0 ? kubeApiServerIsMissing : 'needs root'
const annotation = 'ambient.istio.io/redirection'
const app = (name: string) => ({ namespace: 'app', name })

const ip = (...args: readonly string[]): void => void execFileSync('ip', args, { stdio: ['ignore', 'ignore', 'pipe'] })

/** A network namespace for the node, on one wire with this machine, until it is disposed of. */
function createNode(name: string) {
  const [here, there] = [`${name}h`, `${name}n`]
  const third = randomBytes(1).readUInt8(0)
  const address = (last: number): string => `169.254.${third}.${last}`
  ip('netns', 'add', name)
  ip('link', 'add', here, 'type', 'veth', 'peer', 'name', there, 'netns', name)
  ip('addr', 'add', `${address(1)}/30`, 'dev', here)
  ip('link', 'set', here, 'up')
  ip('-n', name, 'addr', 'add', `${address(2)}/30`, 'dev', there)
  ip('-n', name, 'link', 'set', there, 'up')
  ip('-n', name, 'link', 'set', 'lo', 'up')
  return { host: address(1), [Symbol.dispose]: () => ip('netns', 'del', name) }
}

describe('the node agent on Kubernetes', { timeout: 120_000, skip }, () => {
  const name = `K${randomBytes(3).toString('hex')}`
  const stack = new AsyncDisposableStack()
  let cluster: MeshCluster
  let link: Link
  let host: string
  before(async () => {
    cluster = stack.use(await startMeshCluster())
    host = stack.use(createNode(name)).host
    link = stack.use(await linkTo(cluster.api.port, host))
  })
  after(() => stack.disposeAsync())

  async function kubeconfig(): Promise<string> {
    const config = JSON.parse(cluster.api.kubeconfigText(await cluster.tokenOf('istio-cni'))) as {
      clusters: [{ cluster: Record<string, string> }]
    }
    const [{ cluster: reached }] = config.clusters
    reached.server = `https://${host}:${link.port}`
    reached['tls-server-name'] = 'kubernetes.default.svc'
    const path = join(cluster.dir, 'agent.kubeconfig')
    writeFileSync(path, JSON.stringify(config), { mode: 0o600 })
    return path
  }

  async function startAgent(): Promise<{ readonly child: ChildProcess; readonly lines: readonly string[] }> {
    const { dir } = cluster
    const { KUBERNETES_SERVICE_HOST: _, ...env } = process.env
    const child = spawn('ip', ['netns', 'exec', name, process.execPath, program, 'cni-agent'], {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: {
        ...env,
        KUBECONFIG: await kubeconfig(),
        NODE_NAME: 'node1',
        AMBIENT_ENABLED: 'true',
        MOUNTED_CNI_NET_DIR: join(dir, 'net.d'),
        MOUNTED_CNI_BIN_DIR: join(dir, 'bin'),
        CNI_AGENT_RUN_DIR: join(dir, 'run'),
        ZTUNNEL_UDS_ADDRESS: join(dir, 'ztunnel.sock'),
        POD_NETNS_DIR: '/run/netns',
        HOST_PREFIX: '',
      },
    })
    stack.defer(() => void child.kill('SIGKILL'))
    const lines: string[] = []
    const started = Promise.withResolvers<void>()
    createInterface({ input: child.stdout }).on('line', (line) => {
      lines.push(line)
      if (/node agent started/.test(line)) started.resolve()
    })
    child.once('exit', (code) => started.reject(new Error(`the agent ended with ${code}:\n${lines.join('\n')}`)))
    await started.promise
    return { child, lines }
  }

  const annotated = (value: string) =>
    cluster.api.until(resources.pods, app('web-0'), (pod) =>
      pod?.metadata.annotations?.[annotation] === value ? true : undefined,
    )

  test('enrols a pod, with a proxy and before there is one', async () => {
    const { client } = cluster
    const labels = { 'istio.io/dataplane-mode': 'ambient' }
    await client.patch(resources.namespaces, { name: 'app' }, { kind: 'merge', body: { metadata: { labels } } })
    await client.create<KubeObject>(resources.nodes, { apiVersion: 'v1', kind: 'Node', metadata: { name: 'node1' } })
    const pod = { metadata: { labels: { app: 'cni' } }, spec: { containers: [{ name: 'a', image: 'host' }] } }
    await client.create<KubeObject>(resources.daemonSets, {
      apiVersion: 'apps/v1',
      kind: 'DaemonSet',
      metadata: { namespace: 'istio-system', name: 'istio-cni-node' },
      spec: { selector: { matchLabels: { app: 'cni' } }, template: pod },
    })
    const { metadata } = await createRunningPod(client, app('web-0'), { ip: '10.66.0.1', account: 'web' })
    const netns = `${name}-${metadata.uid}`
    ip('netns', 'add', netns)
    stack.defer(() => ip('netns', 'del', netns))
    ip('-n', netns, 'link', 'set', 'lo', 'up')
    ip('-n', netns, 'addr', 'add', '10.66.0.1/32', 'dev', 'lo')

    const { child, lines } = await startAgent()
    await annotated('pending')
    const proxy = connectSeqpacket(join(cluster.dir, 'ztunnel.sock'))
    stack.defer(() => proxy.close())
    await proxy.send(toBinary(zds.ZdsHelloSchema, create(zds.ZdsHelloSchema, { version: zds.Version.V1 })))
    const serving = (async (): Promise<void> => {
      for (;;) {
        const packet = await proxy.receive({ timeoutMs: 20_000 })
        if (packet === undefined) return
        for (const descriptor of packet.descriptors) closeSync(descriptor)
        const { payload } = fromBinary(zds.WorkloadRequestSchema, packet.message)
        const ack = { payload: { case: 'ack' as const, value: create(zds.AckSchema, {}) } }
        await proxy.send(toBinary(zds.WorkloadResponseSchema, create(zds.WorkloadResponseSchema, ack)))
        if (payload.case === 'add') assert.equal(payload.value.uid, metadata.uid)
      }
    })()
    await annotated('enabled')
    const shown = ['iptables-save', 'iptables-legacy-save', 'nft list ruleset'].map((tool) => `${tool} 2>/dev/null`)
    const rules = execFileSync('ip', ['netns', 'exec', netns, 'sh', '-c', `${shown.join('; ')}; true`])
    assert.match(rules.toString(), /\b15008\b/)

    const ended = once(child, 'exit')
    child.kill('SIGTERM')
    assert.deepEqual(await ended, [0, null], lines.join('\n'))
    await serving
    assert.match(lines.join('\n'), /this is a restart or an upgrade/)
    assert.deepEqual(cluster.refusals('istio-cni'), [])
  })
})
