// Which addresses and names the network of an instance has. Pure.
import { createHash } from 'node:crypto'
import { StandaloneError } from '../error.ts'
import { addressAt, type Cidr, formatCidr, overlaps, parseCidr, subrange } from './cidr.ts'

export interface NodePlan {
  readonly name: string
  /** Name of the node's network namespace. */
  readonly namespace: string
  /** The node's interface on the host's side. */
  readonly hostInterface: string
  readonly ip: string
  readonly podCidr: string
}

export interface NetworkPlan {
  /** A short hash of the state directory, part of every name on the host. */
  readonly instance: string
  readonly bridge: string
  readonly hostIP: string
  readonly nodeCidr: string
  readonly clusterCidr: string
  readonly serviceCidr: string
  readonly dnsIP: string
  readonly nodes: readonly NodePlan[]
}

export function instanceId(stateDir: string): string {
  return createHash('sha256').update(stateDir).digest('hex').slice(0, 6)
}

export const mostNodes = 200

/**
 * Chooses ranges that nothing on the host uses; `before` is kept where it is still free.
 * @throws StandaloneError when no range is free
 */
export function planNetwork(
  stateDir: string,
  nodeCount: number,
  used: readonly string[],
  before?: Pick<NetworkPlan, 'nodeCidr' | 'clusterCidr' | 'serviceCidr'>,
): NetworkPlan {
  if (nodeCount < 1 || nodeCount > mostNodes) {
    throw new StandaloneError('USAGE', `--nodes ${nodeCount}: expected a number from 1 to ${mostNodes}`)
  }
  const instance = instanceId(stateDir)
  const taken = used.map(parseCidr)
  const start = Number.parseInt(instance.slice(0, 2), 16)
  const choose = (name: string, kept: string | undefined, candidates: readonly Cidr[]): Cidr => {
    const ordered = kept === undefined ? candidates : [parseCidr(kept), ...candidates]
    const free = ordered.find((candidate) => !taken.some((other) => overlaps(candidate, other)))
    if (free === undefined) {
      throw new StandaloneError('NO_FREE_RANGE', `no private range is free for ${name}: the host's routes use them all`)
    }
    taken.push(free)
    return free
  }
  const rotate = <T>(list: readonly T[]): T[] => list.map((_, index) => list[(index + start) % list.length] as T)
  const within = (text: string, prefix: number, count: number) =>
    Array.from({ length: count }, (_, index) => subrange(parseCidr(text), prefix, index))
  const nodeRange = choose('nodes', before?.nodeCidr, rotate(within('172.28.0.0/14', 24, 1024)))
  const preferredPods = parseCidr('10.244.0.0/16')
  const preferredServices = parseCidr('10.96.0.0/16')
  const others = rotate(within('10.128.0.0/10', 16, 64))
  const pods = choose('pods', before?.clusterCidr, [preferredPods, ...others])
  const services = choose('services', before?.serviceCidr, [preferredServices, ...others])
  return {
    instance,
    bridge: `lateen-${instance}`,
    hostIP: addressAt(nodeRange, 1),
    nodeCidr: formatCidr(nodeRange),
    clusterCidr: formatCidr(pods),
    serviceCidr: formatCidr(services),
    dnsIP: addressAt(services, 10),
    nodes: Array.from({ length: nodeCount }, (_, index): NodePlan => {
      const name = `node-${index + 1}`
      return {
        name,
        namespace: `lateen-${instance}-${name}`,
        hostInterface: `lt${instance}n${index + 1}`,
        ip: addressAt(nodeRange, index + 11),
        podCidr: formatCidr(subrange(pods, 24, index)),
      }
    }),
  }
}
