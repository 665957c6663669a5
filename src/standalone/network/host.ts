// The network of an instance on the host: a bridge, a namespace for each node, routes, and address translation to the outside.
import { existsSync } from 'node:fs'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { run, tryRun } from '../run.ts'
import type { NetworkPlan, NodePlan } from './plan.ts'

/** Ranges that the host's routes and interfaces use, apart from those of the given bridge. */
export async function usedRanges(bridge: string): Promise<string[]> {
  const routes = JSON.parse((await run(['ip', '-4', '-j', 'route', 'show', 'table', 'all'])) || '[]') as {
    dst?: string
    dev?: string
    type?: string
  }[]
  const addresses = JSON.parse((await run(['ip', '-4', '-j', 'address'])) || '[]') as {
    ifname?: string
    addr_info?: { local?: string; prefixlen?: number }[]
  }[]
  return [
    ...routes.flatMap(({ dst, dev }) => (dst === undefined || dst === 'default' || dev === bridge ? [] : [dst])),
    ...addresses.flatMap(({ ifname, addr_info = [] }) =>
      ifname === bridge ? [] : addr_info.flatMap(({ local, prefixlen }) => (local ? [`${local}/${prefixlen}`] : [])),
    ),
  ]
}

export interface HostChanges {
  /** What /proc/sys/net/ipv4/ip_forward held before, if it was changed. */
  readonly ipForward?: string
}

/** Makes what the plan says, where it is not there yet. Resolves with what was changed on the host apart from named things. */
export async function createNetwork(plan: NetworkPlan): Promise<HostChanges> {
  const { bridge, hostIP, nodeCidr } = plan
  const prefix = nodeCidr.split('/')[1]
  if (!existsSync(`/sys/class/net/${bridge}`)) await run(['ip', 'link', 'add', bridge, 'type', 'bridge'])
  await run(['ip', 'address', 'replace', `${hostIP}/${prefix}`, 'dev', bridge])
  await run(['ip', 'link', 'set', bridge, 'up'])
  for (const node of plan.nodes) await createNodeNamespace(plan, node, prefix ?? '24')
  for (const node of plan.nodes) {
    await run(['ip', 'route', 'replace', node.podCidr, 'via', node.ip, 'dev', bridge])
    for (const other of plan.nodes) {
      if (other === node) continue
      await run(['ip', '-n', node.namespace, 'route', 'replace', other.podCidr, 'via', other.ip])
    }
  }
  const [first] = plan.nodes
  if (first !== undefined) await run(['ip', 'route', 'replace', plan.serviceCidr, 'via', first.ip, 'dev', bridge])
  await run(['nft', '-f', '-'], { input: hostRuleset(plan) })
  await acceptForwarding(plan)
  const path = '/proc/sys/net/ipv4/ip_forward'
  const before = (await readFile(path, 'utf8')).trim()
  if (before === '1') return {}
  await writeFile(path, '1')
  return { ipForward: before }
}

async function createNodeNamespace(plan: NetworkPlan, node: NodePlan, prefix: string): Promise<void> {
  const { namespace, hostInterface } = node
  if (!existsSync(`/run/netns/${namespace}`)) await run(['ip', 'netns', 'add', namespace])
  const inside = ['ip', '-n', namespace]
  await run([...inside, 'link', 'set', 'lo', 'up'])
  if (!existsSync(`/sys/class/net/${hostInterface}`)) {
    await run(['ip', 'link', 'add', hostInterface, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', namespace])
  }
  await run(['ip', 'link', 'set', hostInterface, 'master', plan.bridge, 'up'])
  await run([...inside, 'address', 'replace', `${node.ip}/${prefix}`, 'dev', 'eth0'])
  await run([...inside, 'link', 'set', 'eth0', 'up'])
  await run([...inside, 'route', 'replace', 'default', 'via', plan.hostIP])
  const sysctls =
    'echo 1 > /proc/sys/net/ipv4/ip_forward; echo 0 > /proc/sys/net/ipv4/conf/all/rp_filter; echo 0 > /proc/sys/net/ipv4/conf/default/rp_filter'
  await run(['nsenter', `--net=/run/netns/${namespace}`, 'sh', '-c', sysctls])
}

/** The host's own table: nodes reach the outside with the host's address. */
export function hostRuleset(plan: Pick<NetworkPlan, 'bridge' | 'nodeCidr'>): string {
  const table = plan.bridge
  return `add table ip ${table}
delete table ip ${table}
table ip ${table} {
  chain postrouting {
    type nat hook postrouting priority 100;
    ip saddr ${plan.nodeCidr} oifname != "${table}" oifname != "lo" masquerade
  }
}
`
}

/** Hosts that refuse forwarding by default (Docker makes them so) need an exception in their own chain. */
async function acceptForwarding(plan: NetworkPlan): Promise<void> {
  const rules = await tryRun(['iptables', '-w', '5', '-S', 'FORWARD']).catch(() => undefined)
  if (rules === undefined || rules.code !== 0 || !rules.stdout.includes('-P FORWARD DROP')) return
  for (const rule of forwardRules(plan.bridge)) {
    if ((await tryRun(['iptables', '-w', '5', '-C', 'FORWARD', ...rule])).code === 0) continue
    await run(['iptables', '-w', '5', '-I', 'FORWARD', ...rule])
  }
}

function forwardRules(bridge: string): string[][] {
  return ['-i', '-o'].map((direction) => [direction, bridge, '-m', 'comment', '--comment', bridge, '-j', 'ACCEPT'])
}

/** The namespaces (of nodes and pods) and the interfaces of the instance that are there. */
export async function networkNames(instance: string): Promise<{ namespaces: string[]; interfaces: string[] }> {
  const bridge = `lateen-${instance}`
  const namespaces = existsSync('/run/netns') ? await readdir('/run/netns') : []
  const interfaces = await readdir('/sys/class/net')
  return {
    namespaces: namespaces.filter((name) => name.startsWith(`${bridge}-`)),
    interfaces: interfaces.filter((name) => name === bridge || new RegExp(`^lt${instance}n\\d+$`).test(name)),
  }
}

/** Removes everything of the instance, whatever of it is there; the namespaces of its pods too. */
export async function removeNetwork(instance: string, changes: HostChanges): Promise<void> {
  const bridge = `lateen-${instance}`
  const { namespaces, interfaces } = await networkNames(instance)
  for (const name of namespaces) await tryRun(['ip', 'netns', 'delete', name])
  for (const name of interfaces) await tryRun(['ip', 'link', 'delete', name])
  await tryRun(['nft', '-f', '-'], { input: `add table ip ${bridge}\ndelete table ip ${bridge}\n` })
  for (const rule of forwardRules(bridge)) {
    await tryRun(['iptables', '-w', '5', '-D', 'FORWARD', ...rule]).catch(() => undefined)
  }
  const others = (await readdir('/sys/class/net')).some((name) => /^lateen-[0-9a-f]{6}$/.test(name) && name !== bridge)
  if (changes.ipForward !== undefined && !others && process.getuid?.() === 0)
    await writeFile('/proc/sys/net/ipv4/ip_forward', changes.ipForward)
}
