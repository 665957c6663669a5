// A packet-filter program as data: what is to be in force, independent of whether it is there already.

export type Backend = 'iptables' | 'nftables'
export type IpFamily = 4 | 6

/** One iptables rule. `args` are the words after the chain; `insert` puts it at that position (1 = first) instead of the end. */
export interface IptablesRule {
  readonly table: 'filter' | 'mangle' | 'nat' | 'raw'
  readonly chain: string
  readonly args: readonly string[]
  readonly insert?: number
}

/** A program for iptables: one list of rules a family, in order. */
export interface IptablesProgram {
  readonly backend: 'iptables'
  readonly families: readonly { readonly family: IpFamily; readonly rules: readonly IptablesRule[] }[]
}

export interface NftChain {
  readonly name: string
  /** Only base chains have a hook: `type nat hook output priority -100 ;`. */
  readonly hook?: string
}

export interface NftTable {
  /** In family `inet`. */
  readonly name: string
  readonly sets?: readonly { readonly name: string; readonly type: 'ipv4_addr' | 'ipv6_addr' }[]
  readonly chains: readonly NftChain[]
  readonly rules: readonly { readonly chain: string; readonly expression: string }[]
}

/** A program for nftables: applied as one transaction. */
export interface NftProgram {
  readonly backend: 'nftables'
  readonly tables: readonly NftTable[]
}

export type Program = IptablesProgram | NftProgram

/** Chains of ours begin with this; everything in them belongs to the mesh. */
export const ownChainPrefix = 'ISTIO_'

export function isOwnChain(chain: string): boolean {
  return chain.startsWith(ownChainPrefix)
}

/** The own chains a table of the program needs: those with rules, then those only jumped to. */
export function ownChains(rules: readonly IptablesRule[]): string[] {
  const withRules = rules.map((rule) => rule.chain)
  const targets = rules.flatMap((rule) => {
    const jump = rule.args.indexOf('-j')
    return jump < 0 ? [] : [rule.args[jump + 1] ?? '']
  })
  return [...new Set([...withRules, ...targets].filter(isOwnChain))]
}

/** The rules by table, tables in alphabetical order. */
export function byTable(rules: readonly IptablesRule[]): [table: string, rules: IptablesRule[]][] {
  return Object.entries(Object.groupBy(rules, (rule) => rule.table))
    .map(([table, ofTable]): [string, IptablesRule[]] => [table, ofTable ?? []])
    .sort(([a], [b]) => (a < b ? -1 : 1))
}
