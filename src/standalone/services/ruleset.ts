// The nftables program that gives service addresses their meaning on a node. Pure.
import { createHash } from 'node:crypto'
import type { Backend, ServicePort } from './backends.ts'

export interface RulesetSettings {
  readonly table: string
  /** Addresses of all pods of the cluster. */
  readonly podCidr: string
  /** Where pods are reached with their own address: other pods, services, the network of the nodes. */
  readonly directCidrs: readonly string[]
}

export interface Ruleset {
  readonly text: string
  /** Chains and sets that the text defines, to know later which are no longer used. */
  readonly chains: ReadonlySet<string>
  readonly sets: ReadonlySet<string>
}

/** The bit of the packet mark that asks for masquerading. */
const masqueradeMark = '0x4000'
const baseChains = ['prerouting', 'output', 'postrouting', 'services', 'refuse-forward', 'refuse-output', 'refuse']

/**
 * One transaction for `nft -f -`. It keeps the memory of session affinity (the sets), and removes what `before`
 * defined and this one does not need.
 */
export function serviceRuleset(
  ports: readonly ServicePort[],
  settings: RulesetSettings,
  before?: Pick<Ruleset, 'chains' | 'sets'>,
): Ruleset {
  const { table } = settings
  const chains = new Map<string, string[]>()
  const sets = new Map<string, string>()
  const serviceIps: string[] = []
  const nodePorts: string[] = []
  const refused: string[] = []
  const refusedNodePorts: string[] = []

  for (const port of ports) {
    const keys = port.ips.map((ip) => `${ip} . ${port.protocol} . ${port.port}`)
    if (port.backends.length === 0) refused.push(...keys)
    else {
      const chain = `svc-${shortHash(port.name, port.protocol)}`
      chains.set(chain, [
        `ip saddr != ${settings.podCidr} meta mark set meta mark or ${masqueradeMark}`,
        ...spread(port, port.backends, chains, sets),
      ])
      serviceIps.push(...keys.map((key) => `${key} : goto ${chain}`))
    }
    if (port.nodePort === undefined) continue
    const key = `${port.protocol} . ${port.nodePort}`
    if (port.external.backends.length === 0) {
      refusedNodePorts.push(key)
      continue
    }
    const chain = `ext-${shortHash(port.name, port.protocol)}`
    chains.set(chain, [
      ...(port.external.local ? [] : [`meta mark set meta mark or ${masqueradeMark}`]),
      ...spread(port, port.external.backends, chains, sets),
    ])
    nodePorts.push(`${key} : goto ${chain}`)
  }

  const lines = [
    `add table ip ${table}`,
    `flush table ip ${table}`,
    `add chain ip ${table} prerouting { type nat hook prerouting priority -100 ; }`,
    `add chain ip ${table} output { type nat hook output priority -100 ; }`,
    `add chain ip ${table} postrouting { type nat hook postrouting priority 100 ; }`,
    `add chain ip ${table} refuse-forward { type filter hook forward priority -10 ; }`,
    `add chain ip ${table} refuse-output { type filter hook output priority -10 ; }`,
    `add chain ip ${table} services`,
    `add chain ip ${table} refuse`,
    ...[...chains.keys()].map((chain) => `add chain ip ${table} ${chain}`),
    `add map ip ${table} service-ips { type ipv4_addr . inet_proto . inet_service : verdict ; }`,
    `add map ip ${table} node-ports { type inet_proto . inet_service : verdict ; }`,
    `add set ip ${table} no-backends { type ipv4_addr . inet_proto . inet_service ; }`,
    `add set ip ${table} no-backends-node-ports { type inet_proto . inet_service ; }`,
    `flush map ip ${table} service-ips`,
    `flush map ip ${table} node-ports`,
    `flush set ip ${table} no-backends`,
    `flush set ip ${table} no-backends-node-ports`,
    ...[...sets].map(
      ([set, timeout]) =>
        `add set ip ${table} ${set} { type ipv4_addr ; flags dynamic,timeout ; timeout ${timeout} ; }`,
    ),
    ...elements(table, 'service-ips', serviceIps),
    ...elements(table, 'node-ports', nodePorts),
    ...elements(table, 'no-backends', refused),
    ...elements(table, 'no-backends-node-ports', refusedNodePorts),
    `add rule ip ${table} prerouting jump services`,
    `add rule ip ${table} output jump services`,
    `add rule ip ${table} services ip daddr . meta l4proto . th dport vmap @service-ips`,
    `add rule ip ${table} services fib daddr type local ip daddr != 127.0.0.0/8 meta l4proto . th dport vmap @node-ports`,
    `add rule ip ${table} refuse-forward ct state new jump refuse`,
    `add rule ip ${table} refuse-output ct state new jump refuse`,
    `add rule ip ${table} refuse ip daddr . meta l4proto . th dport @no-backends reject`,
    `add rule ip ${table} refuse fib daddr type local meta l4proto . th dport @no-backends-node-ports reject`,
    `add rule ip ${table} postrouting meta mark and ${masqueradeMark} == ${masqueradeMark} meta mark set meta mark xor ${masqueradeMark} masquerade fully-random`,
    `add rule ip ${table} postrouting ip saddr ${settings.podCidr} ip daddr != { ${settings.directCidrs.join(', ')} } ip daddr != 127.0.0.0/8 masquerade`,
    ...[...chains].flatMap(([chain, rules]) => rules.map((rule) => `add rule ip ${table} ${chain} ${rule}`)),
    ...[...(before?.chains ?? [])]
      .filter((chain) => !chains.has(chain) && !baseChains.includes(chain))
      .map((chain) => `delete chain ip ${table} ${chain}`),
    ...[...(before?.sets ?? [])].filter((set) => !sets.has(set)).map((set) => `delete set ip ${table} ${set}`),
  ]
  return { text: `${lines.join('\n')}\n`, chains: new Set(chains.keys()), sets: new Set(sets.keys()) }
}

function spread(
  port: ServicePort,
  backends: readonly Backend[],
  chains: Map<string, string[]>,
  sets: Map<string, string>,
): string[] {
  const targets = backends.map((backend) => {
    const hash = shortHash(port.name, port.protocol, backend.ip, String(backend.port))
    const set = port.affinitySeconds === undefined ? undefined : `aff-${hash}`
    if (set !== undefined) sets.set(set, `${port.affinitySeconds}s`)
    const chain = `ep-${hash}`
    chains.set(chain, [
      `ip saddr ${backend.ip} meta mark set meta mark or ${masqueradeMark}`,
      ...(set === undefined ? [] : [`update @${set} { ip saddr }`]),
      `meta l4proto ${port.protocol} dnat to ${backend.ip}:${backend.port}`,
    ])
    return { chain, set }
  })
  const remembered = targets.flatMap(({ chain, set }) => (set === undefined ? [] : [`ip saddr @${set} goto ${chain}`]))
  const [only] = targets
  const choice =
    targets.length === 1 && only !== undefined
      ? `goto ${only.chain}`
      : `numgen random mod ${targets.length} vmap { ${targets.map(({ chain }, index) => `${index} : goto ${chain}`).join(', ')} }`
  return [...remembered, choice]
}

function elements(table: string, set: string, entries: readonly string[]): string[] {
  const unique = [...new Map(entries.map((entry) => [entry.split(' : ')[0], entry])).values()]
  return unique.length === 0 ? [] : [`add element ip ${table} ${set} { ${unique.join(', ')} }`]
}

function shortHash(...parts: readonly string[]): string {
  return createHash('sha256').update(parts.join('\n')).digest('hex').slice(0, 12)
}
