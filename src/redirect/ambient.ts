// The redirection of ambient mode: the programs for a pod's network namespace and for the node's.
import { connectionMark, nftTables, ports, probeSets, probeSource, proxyMark } from './constants.ts'
import type { PodOverrides } from './overrides.ts'
import type { Backend, IpFamily, IptablesProgram, IptablesRule, NftProgram, NftTable, Program } from './program.ts'

export interface AmbientSettings {
  readonly backend: Backend
  readonly enableIpv6: boolean
  /** Capture DNS of every pod that does not say otherwise. */
  readonly redirectDns: boolean
  readonly probeSourceIpv4: string
  readonly probeSourceIpv6: string
}

export const ambientDefaults: AmbientSettings = {
  backend: 'iptables',
  enableIpv6: true,
  redirectDns: true,
  probeSourceIpv4: probeSource.ipv4,
  probeSourceIpv6: probeSource.ipv6,
}

/** What goes into one pod's network namespace. */
export function podProgram(settings: AmbientSettings, overrides: PodOverrides): Program {
  return settings.backend === 'iptables' ? podIptables(settings, overrides) : podNftables(settings, overrides)
}

/**
 * What goes into the node's network namespace: probes of the node's own processes get a source address that pods let through.
 * @param kubeletUid user id of the process that probes; only the nftables backend needs it, as nft cannot match "has a local socket".
 */
export function hostProgram(settings: AmbientSettings, kubeletUid: string | undefined): Program {
  return settings.backend === 'iptables' ? hostIptables(settings) : hostNftables(settings, kubeletUid)
}

function capturesDns(settings: AmbientSettings, overrides: PodOverrides): boolean {
  return overrides.dnsProxy === 'unset' ? settings.redirectDns : overrides.dnsProxy === 'enabled'
}

function families(settings: AmbientSettings): IpFamily[] {
  return settings.enableIpv6 ? [4, 6] : [4]
}

function addressesOf(family: IpFamily, settings: AmbientSettings): { loopback: string; probe: string } {
  return family === 4
    ? { loopback: '127.0.0.1/32', probe: settings.probeSourceIpv4 }
    : { loopback: '::1/128', probe: settings.probeSourceIpv6 }
}

function podIptables(settings: AmbientSettings, overrides: PodOverrides): IptablesProgram {
  return {
    backend: 'iptables',
    families: families(settings).map((family) => ({
      family,
      rules: podIptablesRules(addressesOf(family, settings), capturesDns(settings, overrides), overrides),
    })),
  }
}

function podIptablesRules(
  { loopback, probe }: { loopback: string; probe: string },
  dns: boolean,
  { ingressMode, virtualInterfaces }: PodOverrides,
): IptablesRule[] {
  const rules: IptablesRule[] = []
  const add = (table: IptablesRule['table'], chain: string, text: string): void => {
    rules.push({ table, chain, args: text.split(' ') })
  }
  const prerouting = (table: IptablesRule['table'], text: string): void => add(table, 'ISTIO_PRERT', text)
  const output = (table: IptablesRule['table'], text: string): void => add(table, 'ISTIO_OUTPUT', text)
  for (const table of dns ? (['mangle', 'nat', 'raw'] as const) : (['mangle', 'nat'] as const)) {
    add(table, 'PREROUTING', '-j ISTIO_PRERT')
    add(table, 'OUTPUT', '-j ISTIO_OUTPUT')
  }
  const [mark, ownMark] = [connectionMark, proxyMark]
  prerouting('mangle', `-m mark --mark ${ownMark} -j CONNMARK --set-xmark ${mark}`)
  output('mangle', `-m connmark --mark ${mark} -j CONNMARK --restore-mark --nfmask 0xffffffff --ctmask 0xffffffff`)
  for (const name of virtualInterfaces) {
    prerouting('nat', `-i ${name} -p tcp -j REDIRECT --to-ports ${ports.outbound}`)
    prerouting('nat', `-i ${name} -p tcp -j RETURN`)
  }
  if (!ingressMode) prerouting('nat', `-s ${probe} -p tcp -m tcp -j ACCEPT`)
  output('nat', `-d ${probe} -p tcp -m tcp -j ACCEPT`)
  if (!ingressMode) {
    prerouting(
      'nat',
      `! -d ${loopback} -p tcp ! --dport ${ports.inboundHbone} -m mark ! --mark ${ownMark} -j REDIRECT --to-ports ${ports.inboundPlaintext}`,
    )
  }
  if (dns) {
    output('nat', `! -o lo -p udp -m mark ! --mark ${ownMark} -m udp --dport 53 -j REDIRECT --to-port ${ports.dns}`)
    output('nat', `! -d ${loopback} -p tcp --dport 53 -m mark ! --mark ${ownMark} -j REDIRECT --to-ports ${ports.dns}`)
    // The proxy's own queries and the application's may use the same tuple: separate zones keep conntrack from mixing them.
    output('raw', `-p udp -m mark --mark ${ownMark} -m udp --dport 53 -j CT --zone 1`)
    prerouting('raw', `-p udp -m mark ! --mark ${ownMark} -m udp --sport 53 -j CT --zone 1`)
  }
  output('nat', `-p tcp -m mark --mark ${mark} -j ACCEPT`)
  output('nat', `! -d ${loopback} -o lo -j ACCEPT`)
  output('nat', `! -d ${loopback} -p tcp -m mark ! --mark ${ownMark} -j REDIRECT --to-ports ${ports.outbound}`)
  return rules
}

function hostIptables(settings: AmbientSettings): IptablesProgram {
  return {
    backend: 'iptables',
    families: families(settings).map((family) => {
      const { probe } = addressesOf(family, settings)
      const match = `-m owner --socket-exists -p tcp -m set --match-set ${probeSets[family]} dst -j SNAT --to-source ${probe}`
      return {
        family,
        rules: [
          { table: 'nat', chain: 'POSTROUTING', args: ['-j', 'ISTIO_POSTRT'], insert: 1 },
          { table: 'nat', chain: 'ISTIO_POSTRT', args: match.split(' ') },
        ],
      }
    }),
  }
}

/** Rules of one nftables table, each said once for IPv4 and, where IPv6 is on, once for IPv6. */
function nftRules(settings: AmbientSettings): {
  add: (chain: string, expression: string) => void
  addEach: (chain: string, expression: (ip: 'ip' | 'ip6', loopback: string, probe: string) => string) => void
  rules: { chain: string; expression: string }[]
} {
  const rules: { chain: string; expression: string }[] = []
  const add = (chain: string, expression: string): void => void rules.push({ chain, expression })
  return {
    rules,
    add,
    addEach: (chain, expression) => {
      for (const family of families(settings)) {
        const { loopback, probe } = addressesOf(family, settings)
        add(chain, expression(family === 4 ? 'ip' : 'ip6', loopback, probe))
      }
    },
  }
}

function ambientTable(name: string, hooks: [prerouting: string, output: string], rules: NftTable['rules']): NftTable {
  return {
    name,
    chains: [
      { name: 'prerouting', hook: hooks[0] },
      { name: 'output', hook: hooks[1] },
      { name: 'istio-prerouting' },
      { name: 'istio-output' },
    ],
    rules: [
      { chain: 'prerouting', expression: 'jump istio-prerouting' },
      { chain: 'output', expression: 'jump istio-output' },
      ...rules,
    ],
  }
}

function podNftables(settings: AmbientSettings, overrides: PodOverrides): NftProgram {
  const dns = capturesDns(settings, overrides)
  const [mark] = connectionMark.split('/')
  const [own] = proxyMark.split('/')
  const notOwn = `mark and 0xfff != ${own}`
  const nat = nftRules(settings)
  for (const name of overrides.virtualInterfaces) {
    nat.add('istio-prerouting', `iifname ${name} meta l4proto tcp counter redirect to :${ports.outbound}`)
    nat.add('istio-prerouting', `iifname ${name} meta l4proto tcp counter return`)
  }
  if (!overrides.ingressMode) {
    nat.addEach('istio-prerouting', (ip, _loopback, probe) => `meta l4proto tcp ${ip} saddr ${probe} counter accept`)
  }
  nat.addEach('istio-output', (ip, _loopback, probe) => `meta l4proto tcp ${ip} daddr ${probe} counter accept`)
  if (!overrides.ingressMode) {
    nat.addEach(
      'istio-prerouting',
      (ip, loopback) =>
        `${ip} daddr != ${loopback} tcp dport != ${ports.inboundHbone} ${notOwn} counter redirect to :${ports.inboundPlaintext}`,
    )
  }
  if (dns) {
    nat.add('istio-output', `oifname != lo ${notOwn} udp dport 53 counter redirect to :${ports.dns}`)
    nat.addEach(
      'istio-output',
      (ip, loopback) => `${ip} daddr != ${loopback} tcp dport 53 ${notOwn} counter redirect to :${ports.dns}`,
    )
  }
  nat.add('istio-output', `meta l4proto tcp mark and 0xfff == ${mark} counter accept`)
  nat.addEach('istio-output', (ip, loopback) => `oifname lo ${ip} daddr != ${loopback} counter accept`)
  nat.addEach(
    'istio-output',
    (ip, loopback) => `meta l4proto tcp ${ip} daddr != ${loopback} ${notOwn} counter redirect to :${ports.outbound}`,
  )
  const mangle = [
    {
      chain: 'istio-prerouting',
      expression: `meta mark & 0xfff == ${own} counter ct mark set ct mark & 0xfffff000 | ${mark}`,
    },
    { chain: 'istio-output', expression: `ct mark and 0xfff == ${mark} counter meta mark set ct mark` },
  ]
  const raw = [
    { chain: 'istio-output', expression: `udp dport 53 meta mark and 0xfff == ${own} counter ct zone set 1` },
    { chain: 'istio-prerouting', expression: `udp sport 53 meta mark and 0xfff != ${own} counter ct zone set 1` },
  ]
  const filter = (hook: string, priority: number): string => `type filter hook ${hook} priority ${priority} ;`
  return {
    backend: 'nftables',
    tables: [
      ambientTable(
        nftTables.nat,
        ['type nat hook prerouting priority -100 ;', 'type nat hook output priority -100 ;'],
        nat.rules,
      ),
      ambientTable(nftTables.mangle, [filter('prerouting', -150), 'type route hook output priority -150 ;'], mangle),
      ...(dns ? [ambientTable(nftTables.raw, [filter('prerouting', -300), filter('output', -300)], raw)] : []),
    ],
  }
}

function hostNftables(settings: AmbientSettings, kubeletUid: string | undefined): NftProgram {
  if (kubeletUid === undefined || !/^\d+$/.test(kubeletUid)) {
    throw new TypeError('the host rules for nftables need the user id of the kubelet process')
  }
  const rules = nftRules(settings)
  rules.addEach('postrouting', (ip, _loopback, probe) => {
    const set = probeSets[ip === 'ip' ? 4 : 6]
    return `meta l4proto tcp skuid ${kubeletUid} ${ip} daddr @${set} counter snat to ${probe}`
  })
  return {
    backend: 'nftables',
    tables: [
      {
        name: nftTables.nat,
        chains: [{ name: 'postrouting', hook: 'type nat hook postrouting priority 100 ;' }],
        rules: rules.rules,
      },
    ],
  }
}
