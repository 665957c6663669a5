// Looks at the mesh through the sample's own pods: what a client in a pod gets, and what passes over the wire.
import type { Pod } from 'kubernetes-types/core/v1.js'
import { type KubeObject, resources } from '../../api/index.ts'
import type { KubeClient } from '../../kube/index.ts'
import { capturePackets, openNetworkNamespace } from '../../linux/index.ts'
import { CheckError } from './report.ts'

/** What a request made inside a pod came to: an answer, or why there was none. */
export interface Fetched {
  readonly status?: number
  readonly body?: unknown
  readonly error?: string
}

export interface HeldConnection {
  readonly id: string
  readonly state: 'opening' | 'open' | 'closed'
  /** Milliseconds since the epoch. */
  readonly closedAt?: number
}

const port = 9080
const limitMs = 10_000

export async function podsOf(client: KubeClient, namespace: string, labelSelector?: string): Promise<Pod[]> {
  const options = labelSelector === undefined ? { namespace } : { namespace, labelSelector }
  return (await client.list<KubeObject>(resources.pods, options)).items as Pod[]
}

export async function podOf(client: KubeClient, namespace: string, app: string): Promise<Pod & { ip: string }> {
  const pods = await podsOf(client, namespace, `app=${app}`)
  const pod = pods.find(
    ({ status, metadata }) => status?.phase === 'Running' && metadata?.deletionTimestamp === undefined,
  )
  const ip = pod?.status?.podIP
  if (pod === undefined || ip === undefined)
    throw new CheckError(`no running pod with label app=${app} in namespace ${namespace}`)
  return { ...pod, ip }
}

async function askPod<T>(ip: string, path: string): Promise<T> {
  const response = await fetch(`http://${ip}:${port}${path}`, { signal: AbortSignal.timeout(limitMs) })
  if (!response.ok) throw new CheckError(`http://${ip}:${port}${path}: HTTP ${response.status}`)
  return (await response.json()) as T
}

/** Has a traffic pod ask for a URL, on a connection of its own. The request to the pod is plaintext: it spells the URL in escapes. */
export function fetchFrom(podIp: string, url: string): Promise<Fetched> {
  return askPod(podIp, `/fetch?url=${url.replaceAll(/./g, (character) => `%${character.charCodeAt(0).toString(16)}`)}`)
}

/** Has a traffic pod open a connection and keep it. */
export function holdFrom(podIp: string, to: string): Promise<HeldConnection> {
  return askPod(podIp, `/connect?to=${encodeURIComponent(to)}`)
}

export function heldState(podIp: string, id: string): Promise<HeldConnection> {
  return askPod(podIp, `/connections/${id}`)
}

/** What passed over a node's network while something went on. */
export interface Wire {
  /** TLS records on the tunnel's port. */
  readonly tunnelRecords: number
  /** Packets with one of the words in plaintext. */
  readonly plaintext: readonly string[]
}

const tunnelPort = 15008

/** Watches the network namespaces while `action` runs. */
export async function watchWire(
  namespacePaths: readonly string[],
  words: readonly string[],
  action: () => Promise<void>,
): Promise<Wire> {
  let tunnelRecords = 0
  const plaintext: string[] = []
  const wanted = words.map((word) => Buffer.from(word))
  const see = (packet: Uint8Array): void => {
    const bytes = Buffer.from(packet.buffer, packet.byteOffset, packet.byteLength)
    for (const [index, word] of wanted.entries()) {
      if (bytes.includes(word)) plaintext.push(`${words[index]} in a packet from ${endpointText(bytes)}`)
    }
    if (isTunnelRecord(bytes)) tunnelRecords += 1
  }
  await using stack = new AsyncDisposableStack()
  for (const path of namespacePaths) {
    const namespace = openNetworkNamespace(path)
    stack.defer(() => namespace[Symbol.dispose]())
    stack.use(capturePackets(namespace, see))
  }
  await action()
  await stack.disposeAsync()
  return { tunnelRecords, plaintext }
}

/** The TCP segment of an IPv4 packet; undefined for anything else. */
function tcpOf(packet: Buffer): { source: number; destination: number; payload: Buffer } | undefined {
  const first = packet[0] ?? 0
  if (packet.length < 40 || first >> 4 !== 4 || packet[9] !== 6) return undefined
  const header = (first & 0xf) * 4
  const offset = header + ((packet[header + 12] ?? 0) >> 4) * 4
  return {
    source: packet.readUInt16BE(header),
    destination: packet.readUInt16BE(header + 2),
    payload: packet.subarray(offset, packet.readUInt16BE(2) || packet.length),
  }
}

/** Handshake or application data of TLS 1.2 or later. */
function isTunnelRecord(packet: Buffer): boolean {
  const tcp = tcpOf(packet)
  if (tcp === undefined || (tcp.source !== tunnelPort && tcp.destination !== tunnelPort)) return false
  const [type = 0, major, minor = 0] = tcp.payload
  return type >= 20 && type <= 23 && major === 3 && minor >= 1
}

function endpointText(packet: Buffer): string {
  const tcp = tcpOf(packet)
  const source = [...packet.subarray(12, 16)].join('.')
  const destination = [...packet.subarray(16, 20)].join('.')
  return tcp === undefined
    ? `${source} to ${destination}`
    : `${source}:${tcp.source} to ${destination}:${tcp.destination}`
}
