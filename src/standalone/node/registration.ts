// The node's object and its lease: how the cluster knows that the node is there.

import { readFileSync } from 'node:fs'
import { arch, cpus, hostname, release, totalmem } from 'node:os'
import type { Condition } from '../../api/index.ts'
import { type KubeObject, resources } from '../../api/index.ts'
import type { KubeClient } from '../../kube/index.ts'
import { mergeConditions } from './status.ts'
import type { Node } from './types.ts'

const leaseSeconds = 40
const renewMs = 10_000

export interface NodeDescription {
  readonly name: string
  readonly ips: readonly string[]
  readonly podCidr: string
  readonly kubeletPort: number
  readonly version: string
}

interface Readiness {
  readonly ready: boolean
  readonly message: string
}

export interface Registration extends AsyncDisposable {
  /** Resolves when the node is registered. */
  readonly registered: Promise<void>
  setReady(ready: boolean, message: string): void
}

export function startRegistration(
  client: KubeClient,
  node: NodeDescription,
  log: (message: string) => void,
): Registration {
  const registered = Promise.withResolvers<void>()
  let readiness: Readiness | undefined
  let timer: NodeJS.Timeout | undefined
  let closed = false
  let working: Promise<void> = Promise.resolve()

  const beat = async () => {
    await writeNode(client, node, readiness)
    await renewLease(client, node.name)
    registered.resolve()
  }
  const next = (delayMs: number) => {
    clearTimeout(timer)
    if (closed) return
    timer = setTimeout(() => {
      working = beat().then(
        () => next(renewMs),
        (error: Error) => {
          log(`node ${node.name} not registered: ${error.message}`)
          next(1000)
        },
      )
    }, delayMs)
  }
  next(0)
  return {
    registered: registered.promise,
    setReady(isReady, text) {
      if (readiness?.ready === isReady && readiness.message === text) return
      readiness = { ready: isReady, message: text }
      working.finally(() => next(0))
    },
    async [Symbol.asyncDispose]() {
      closed = true
      clearTimeout(timer)
      await working
    },
  }
}

async function writeNode(client: KubeClient, node: NodeDescription, readiness: Readiness | undefined): Promise<void> {
  const key = { name: node.name }
  const current =
    (await client.get<Node>(resources.nodes, key)) ?? (await client.create(resources.nodes, nodeObject(node)))
  const now = new Date().toISOString().replace(/\.\d+Z$/, 'Z')
  const before = (current.status?.conditions ?? []) as (Condition & { lastHeartbeatTime?: string })[]
  // A node process that starts again knows nothing yet: pods that run stay ready meanwhile.
  const known = readiness ?? (before.length === 0 ? { ready: false, message: 'the node is starting' } : undefined)
  const conditions = known === undefined ? [] : conditionsOf(known, now)
  const capacity = { cpu: String(cpus().length), memory: `${Math.floor(totalmem() / 1024)}Ki`, pods: '250' }
  const status = {
    capacity,
    allocatable: capacity,
    addresses: [
      ...node.ips.map((address) => ({ type: 'InternalIP', address })),
      { type: 'Hostname', address: node.name },
    ],
    daemonEndpoints: { kubeletEndpoint: { Port: node.kubeletPort } },
    nodeInfo: nodeInfo(node.version),
    conditions: mergeConditions(before, conditions, now),
  }
  await client.patch(resources.nodes, key, { kind: 'merge', body: { status } }, { subresource: 'status' })
}

function conditionsOf({ ready, message }: Readiness, lastHeartbeatTime: string): Condition[] {
  const conditions: Condition[] = [
    { type: 'Ready', status: ready ? 'True' : 'False', reason: ready ? 'KubeletReady' : 'KubeletNotReady', message },
    { type: 'MemoryPressure', status: 'False', reason: 'KubeletHasSufficientMemory' },
    { type: 'DiskPressure', status: 'False', reason: 'KubeletHasNoDiskPressure' },
    { type: 'PIDPressure', status: 'False', reason: 'KubeletHasSufficientPID' },
  ]
  return conditions.map((condition) => ({ ...condition, lastHeartbeatTime }))
}

function nodeObject(node: NodeDescription): Node {
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: {
      name: node.name,
      labels: {
        'kubernetes.io/hostname': node.name,
        'kubernetes.io/os': 'linux',
        'kubernetes.io/arch': architecture(),
      },
    },
    spec: { podCIDR: node.podCidr, podCIDRs: [node.podCidr] },
  }
}

function nodeInfo(version: string) {
  const read = (path: string) => {
    try {
      return readFileSync(path, 'utf8').trim()
    } catch {
      return ''
    }
  }
  return {
    architecture: architecture(),
    operatingSystem: 'linux',
    kernelVersion: release(),
    osImage: /PRETTY_NAME="(.*)"/.exec(read('/etc/os-release'))?.[1] ?? 'Linux',
    kubeletVersion: version,
    kubeProxyVersion: version,
    containerRuntimeVersion: `lateen://${version.replace(/^v/, '')}`,
    machineID: read('/etc/machine-id'),
    systemUUID: read('/etc/machine-id') || hostname(),
    bootID: read('/proc/sys/kernel/random/boot_id'),
  }
}

function architecture(): string {
  return { x64: 'amd64' }[arch() as 'x64'] ?? arch()
}

async function renewLease(client: KubeClient, name: string): Promise<void> {
  const namespace = 'kube-node-lease'
  const renewTime = new Date().toISOString().replace('Z', '000Z')
  const spec = { holderIdentity: name, leaseDurationSeconds: leaseSeconds, renewTime }
  const lease: KubeObject = {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name, namespace },
    spec,
  }
  const current = await client.get(resources.leases, { namespace, name })
  if (current === undefined) await client.create(resources.leases, lease)
  else await client.patch(resources.leases, { namespace, name }, { kind: 'merge', body: { spec } })
}
