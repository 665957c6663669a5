// Programs as the text that iptables-restore and nft read.
import {
  byTable,
  type IpFamily,
  type IptablesProgram,
  type IptablesRule,
  type NftProgram,
  ownChains,
} from './program.ts'

/** Input of `iptables-restore --noflush` (IPv4) or `ip6tables-restore --noflush` for a namespace that has none of our chains. */
export function iptablesRestoreInput(program: IptablesProgram, family: IpFamily): string {
  return renderTables(program, family, (chain) => `-N ${chain}`, ruleLine)
}

/**
 * Input that brings a namespace with other rules of ours to the program. Declaring a chain empties it, and restore commits a table at
 * once, so there is no moment without rules. Jumps that exist already are left out.
 */
export function iptablesReplaceInput(
  program: IptablesProgram,
  family: IpFamily,
  present: (rule: IptablesRule) => boolean,
): string {
  return renderTables(
    program,
    family,
    (chain) => `:${chain} - [0:0]`,
    (rule) => (present(rule) ? undefined : ruleLine(rule)),
  )
}

function renderTables(
  program: IptablesProgram,
  family: IpFamily,
  declare: (chain: string) => string,
  line: (rule: IptablesRule) => string | undefined,
): string {
  const rules = program.families.find((one) => one.family === family)?.rules ?? []
  return byTable(rules)
    .map(([table, ofTable]) => {
      const lines = [...ownChains(ofTable).map(declare), ...ofTable.map(line).filter((text) => text !== undefined)]
      return `* ${table}\n${lines.join('\n')}\nCOMMIT\n`
    })
    .join('')
}

function ruleLine({ chain, args, insert }: IptablesRule): string {
  return insert === undefined ? `-A ${chain} ${args.join(' ')}` : `-I ${chain} ${insert} ${args.join(' ')}`
}

/** Input of `nft -f -`: one transaction that empties our tables and fills them again. */
export function nftInput(program: NftProgram): string {
  const lines = program.tables.flatMap((table) => {
    const inTable = `inet ${table.name}`
    return [
      `add table ${inTable}`,
      `flush table ${inTable}`,
      ...(table.sets ?? []).map(({ name, type }) => `add set ${inTable} ${name} { type ${type} ; }`),
      ...table.chains.map(({ name, hook }) =>
        hook === undefined ? `add chain ${inTable} ${name}` : `add chain ${inTable} ${name} { ${hook} }`,
      ),
      ...table.rules.map(({ chain, expression }) => `add rule ${inTable} ${chain} ${expression}`),
    ]
  })
  return `${lines.join('\n')}\n`
}

/** Input of `nft -f -` that removes our tables whether they exist or not. */
export function nftRemovalInput(tables: readonly string[]): string {
  return tables.map((table) => `add table inet ${table}\ndelete table inet ${table}\n`).join('')
}
