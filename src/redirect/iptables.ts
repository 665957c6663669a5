// Brings iptables programs into force in a network namespace, and takes them out again.
import { mustRun, RedirectionError, type RunTool } from './exec.ts'
import { byTable, type IpFamily, type IptablesProgram, type IptablesRule, isOwnChain, ownChains } from './program.ts'
import { iptablesReplaceInput, iptablesRestoreInput } from './render.ts'

/** One flavour of the tools; both families use the same one. */
export interface IptablesFlavour {
  readonly name: 'legacy' | 'nft' | 'plain'
  readonly version: string
  /** Words that go before every writing call. */
  readonly wait: readonly string[]
  readonly locks: boolean
}

const suffix = { legacy: '-legacy', nft: '-nft', plain: '' } as const

function tool(flavour: Pick<IptablesFlavour, 'name'>, family: IpFamily, kind: '' | '-save' | '-restore' = ''): string {
  return `${family === 4 ? 'iptables' : 'ip6tables'}${suffix[flavour.name]}${kind}`
}

/**
 * Chooses the tools for a namespace: legacy where it holds rules already, else nft, else the plain name.
 * @param forced FORCE_IPTABLES_BINARY: `legacy` or `nft`.
 */
export async function detectIptables(
  run: RunTool,
  netns: string | undefined,
  forced?: string,
): Promise<IptablesFlavour> {
  if (forced !== undefined && forced !== '') {
    if (forced !== 'legacy' && forced !== 'nft') {
      throw new RedirectionError(
        'NO_USABLE_IPTABLES',
        `iptables binary "${forced}" unsupported: expected legacy or nft`,
      )
    }
    const found = await probe(run, netns, forced)
    if (found === undefined) throw new RedirectionError('NO_USABLE_IPTABLES', `iptables-${forced} is not usable`)
    return found.flavour
  }
  const legacy = await probe(run, netns, 'legacy')
  if (legacy?.hasRules) return legacy.flavour
  const other = (await probe(run, netns, 'nft')) ?? (await probe(run, netns, 'plain'))
  if (other !== undefined) return other.flavour
  throw new RedirectionError(
    'NO_USABLE_IPTABLES',
    'no usable iptables found (tried iptables-legacy, iptables-nft and iptables): install the package iptables',
  )
}

async function probe(
  run: RunTool,
  netns: string | undefined,
  name: IptablesFlavour['name'],
): Promise<{ flavour: IptablesFlavour; hasRules: boolean } | undefined> {
  const where = netns === undefined ? {} : { netns }
  const save = tool({ name }, 4, '-save')
  const { code, stdout } = await run(save, ['--version'], where)
  if (code === 127) return undefined
  const version = /v(\d+(?:\.\d+)+)/.exec(stdout)?.[1] ?? '0.0.0'
  const locks = !stdout.includes('nf_tables')
  const wait = locks && atLeast(version, '1.6.2') ? ['--wait=30'] : []
  const harmless = ['INPUT', '-p', '255', '-j', 'RETURN']
  const added = await run(tool({ name }, 4), [...wait, '-t', 'nat', '-A', ...harmless], where)
  if (added.code !== 0 || added.stderr.includes('does not exist')) return undefined
  await run(tool({ name }, 4), [...wait, '-t', 'nat', '-D', ...harmless], where)
  const rules = await run(save, [], where)
  return { flavour: { name, version, wait, locks }, hasRules: rules.stdout.split('\n').length - 1 >= 3 }
}

function atLeast(version: string, wanted: string): boolean {
  return version.localeCompare(wanted, 'en', { numeric: true }) >= 0
}

type SavedRules = ReadonlyMap<string, readonly string[]>

/** Chains of one family as `table chain` → the rule lines in it. A tool that fails counts as no rules. */
async function savedRules(
  run: RunTool,
  flavour: IptablesFlavour,
  family: IpFamily,
  netns?: string,
): Promise<SavedRules> {
  const { stdout } = await run(tool(flavour, family, '-save'), [], netns === undefined ? {} : { netns })
  const chains = new Map<string, string[]>()
  let table = ''
  for (const line of stdout.split('\n')) {
    if (line.startsWith('*')) table = line.slice(1).trim()
    else if (line.startsWith(':')) chains.set(`${table} ${line.slice(1).split(' ')[0]}`, [])
    else if (line.startsWith('-A ')) chains.get(`${table} ${line.split(' ')[1]}`)?.push(line)
  }
  return chains
}

/** As `table chain`. */
function ownChainsOf(saved: SavedRules): string[] {
  return [...saved.keys()].filter((key) => isOwnChain(key.split(' ')[1] ?? ''))
}

function environment(
  flavour: IptablesFlavour,
  netns: string | undefined,
): { netns?: string; env?: Record<string, string> } {
  if (netns === undefined) return {}
  // Rules are per namespace but the legacy lock is one a host: a lock a namespace keeps pods from waiting for each other.
  return flavour.locks ? { netns, env: { XTABLES_LOCKFILE: netns } } : { netns }
}

/** Applies the program. What is in force already stays untouched; anything else of ours is replaced, a table at a time, atomically. */
export async function applyIptables(
  run: RunTool,
  flavour: IptablesFlavour,
  program: IptablesProgram,
  netns?: string,
): Promise<'applied' | 'replaced' | 'unchanged'> {
  let outcome: 'applied' | 'replaced' | 'unchanged' = 'unchanged'
  for (const { family, rules } of program.families) {
    const saved = await savedRules(run, flavour, family, netns)
    const residue = ownChainsOf(saved).length > 0
    const present = residue ? await presentRules(run, flavour, family, rules, netns) : new Set<IptablesRule>()
    if (residue && present.size === rules.length && !hasOther(saved, rules)) continue
    const input = residue
      ? iptablesReplaceInput(program, family, (rule) => !isOwnChain(rule.chain) && present.has(rule))
      : iptablesRestoreInput(program, family)
    await mustRun(run, tool(flavour, family, '-restore'), [...flavour.wait, '--noflush', '-v'], {
      ...environment(flavour, netns),
      input,
    })
    outcome = residue ? 'replaced' : 'applied'
  }
  return outcome
}

async function presentRules(
  run: RunTool,
  flavour: IptablesFlavour,
  family: IpFamily,
  rules: readonly IptablesRule[],
  netns?: string,
): Promise<Set<IptablesRule>> {
  const present = new Set<IptablesRule>()
  for (const rule of rules) {
    const args = [...flavour.wait, '-t', rule.table, '-C', rule.chain, ...rule.args]
    const { code } = await run(tool(flavour, family), args, environment(flavour, netns))
    if (code === 0) present.add(rule)
  }
  return present
}

/** Whether own chains hold another number of rules than planned, or there are own chains that are not planned. */
function hasOther(saved: SavedRules, rules: readonly IptablesRule[]): boolean {
  const planned = new Map<string, number>()
  for (const [table, ofTable] of byTable(rules)) {
    for (const chain of ownChains(ofTable)) {
      planned.set(`${table} ${chain}`, ofTable.filter((rule) => rule.chain === chain).length)
    }
  }
  return [...saved].some(([key, lines]) => isOwnChain(key.split(' ')[1] ?? '') && planned.get(key) !== lines.length)
}

/**
 * Removes every chain of ours and every jump to one, in both families, whatever version put them there. Rejects when chains are left.
 */
export async function removeIptables(run: RunTool, flavour: IptablesFlavour, netns?: string): Promise<void> {
  for (const family of [4, 6] as const) {
    const saved = await savedRules(run, flavour, family, netns)
    const owned = ownChainsOf(saved)
    const command = (table: string, ...args: string[]): Promise<unknown> =>
      run(tool(flavour, family), [...flavour.wait, '-t', table, ...args], environment(flavour, netns))
    for (const [key, lines] of saved) {
      const [table = '', chain = ''] = key.split(' ')
      if (isOwnChain(chain)) continue
      for (const line of lines) {
        if (/ -j ISTIO_\S+$/.test(line)) await command(table, '-D', ...line.split(' ').slice(1))
      }
    }
    for (const action of ['-F', '-X']) {
      for (const key of owned) {
        const [table = '', chain = ''] = key.split(' ')
        await command(table, action, chain)
      }
    }
    if (owned.length === 0) continue
    const left = ownChainsOf(await savedRules(run, flavour, family, netns))
    if (left.length > 0) {
      throw new RedirectionError('TOOL_FAILED', `chains could not be removed (IPv${family}): ${left.join(', ')}`)
    }
  }
}
