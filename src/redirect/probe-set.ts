// The set of enrolled pods' addresses on the node, from which the host rules know whose probes to give the fixed source.
import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'
import { nftTables, probeSets } from './constants.ts'
import { mustRun, type RunTool } from './exec.ts'
import type { Backend, IpFamily } from './program.ts'

export interface ProbeSetEntry {
  readonly ip: string
  /** UID of the pod that owns the address. */
  readonly uid: string
}

export interface ProbeSet {
  /** Creates the sets; their content stays when they exist. */
  create(): Promise<void>
  /** Adds or takes over addresses. Addresses of a family that is off are left out. */
  add(entries: readonly ProbeSetEntry[]): Promise<void>
  /** Removes addresses that still belong to the given pod. */
  remove(entries: readonly ProbeSetEntry[]): Promise<void>
  list(): Promise<ProbeSetEntry[]>
  /** Makes the sets hold exactly these. */
  sync(entries: readonly ProbeSetEntry[]): Promise<void>
  destroy(): Promise<void>
}

/** The address as the kernel's tools print it; `::ffff:10.0.0.1` is 10.0.0.1 to them. */
function canonical(ip: string): string {
  return ipaddr.isValid(ip) ? ipaddr.process(ip).toString() : ip
}

/** Runs works one after the other. */
function serially(): <T>(work: () => Promise<T>) => Promise<T> {
  let last: Promise<unknown> = Promise.resolve()
  return (work) => {
    const next = last.then(work)
    last = next.catch(() => undefined)
    return next
  }
}

export function createProbeSet(run: RunTool, backend: Backend, enableIpv6: boolean): ProbeSet {
  const families: IpFamily[] = enableIpv6 ? [4, 6] : [4]
  const sets = backend === 'iptables' ? ipsetCommands(run) : nftCommands(run)
  const familyOf = (ip: string): IpFamily | undefined => {
    const family = isIP(ip)
    return (family === 4 || family === 6) && families.includes(family) ? family : undefined
  }
  // Removing looks before it removes: an address that another pod takes over in between must stay.
  const alone = serially()
  const list = async (): Promise<ProbeSetEntry[]> =>
    (await Promise.all(families.map((family) => sets.list(family)))).flat()
  const add = async (entries: readonly ProbeSetEntry[]): Promise<void> => {
    for (const entry of entries) {
      const ip = canonical(entry.ip)
      const family = familyOf(ip)
      if (family !== undefined) await sets.add(family, ip, entry.uid)
    }
  }
  return {
    create: () =>
      alone(async () => {
        for (const family of families) await sets.create(family)
      }),
    add: (entries) => alone(() => add(entries)),
    remove: (entries) =>
      alone(async () => {
        if (entries.length === 0) return
        const present = await list()
        for (const entry of entries) {
          const ip = canonical(entry.ip)
          const family = familyOf(ip)
          const owned = present.some((one) => one.ip === ip && one.uid === entry.uid)
          if (family !== undefined && owned) await sets.remove(family, ip)
        }
      }),
    list: () => alone(list),
    sync: (entries) =>
      alone(async () => {
        await add(entries)
        const wanted = new Set(entries.map((entry) => canonical(entry.ip)))
        for (const { ip } of await list()) {
          const family = familyOf(ip)
          if (family !== undefined && !wanted.has(ip)) await sets.remove(family, ip)
        }
      }),
    destroy: () =>
      alone(async () => {
        for (const family of [4, 6] as const) await sets.destroy(family)
      }),
  }
}

interface SetCommands {
  create(family: IpFamily): Promise<unknown>
  add(family: IpFamily, ip: string, uid: string): Promise<unknown>
  remove(family: IpFamily, ip: string): Promise<unknown>
  list(family: IpFamily): Promise<ProbeSetEntry[]>
  destroy(family: IpFamily): Promise<unknown>
}

function ipsetCommands(run: RunTool): SetCommands {
  return {
    create: (family) =>
      mustRun(run, 'ipset', [
        ...['create', probeSets[family], 'hash:ip', 'family', family === 4 ? 'inet' : 'inet6'],
        ...['comment', '-exist'],
      ]),
    add: (family, ip, uid) => mustRun(run, 'ipset', ['add', probeSets[family], ip, 'comment', uid, '-exist']),
    remove: (family, ip) => mustRun(run, 'ipset', ['del', probeSets[family], ip, '-exist']),
    list: async (family) => {
      const saved = await mustRun(run, 'ipset', ['save', probeSets[family]])
      return saved
        .split('\n')
        .map((line) => /^add \S+ (\S+)(?:.* comment "([^"]*)")?/.exec(line))
        .filter((match) => match !== null)
        .map(([, ip = '', uid = '']) => ({ ip, uid }))
    },
    destroy: async (family) => {
      await run('ipset', ['flush', probeSets[family]])
      await run('ipset', ['destroy', probeSets[family]])
    },
  }
}

function nftCommands(run: RunTool): SetCommands {
  const set = (family: IpFamily): string => `inet ${nftTables.nat} ${probeSets[family]}`
  const nft = (input: string): Promise<string> => mustRun(run, 'nft', ['-f', '-'], { input })
  return {
    create: (family) =>
      nft(
        `add table inet ${nftTables.nat}\nadd set ${set(family)} { type ${family === 4 ? 'ipv4_addr' : 'ipv6_addr'} ; }\n`,
      ),
    // An element's comment can't be changed: it is deleted and added in one transaction (added first, so that deleting can't fail).
    add: (family, ip, uid) =>
      nft(
        `add element ${set(family)} { ${ip} }\ndelete element ${set(family)} { ${ip} }\nadd element ${set(family)} { ${ip} comment "${uid}" }\n`,
      ),
    remove: (family, ip) => nft(`add element ${set(family)} { ${ip} }\ndelete element ${set(family)} { ${ip} }\n`),
    list: async (family) => {
      const text = await mustRun(run, 'nft', ['--json', 'list', 'set', 'inet', nftTables.nat, probeSets[family]])
      const { nftables } = JSON.parse(text) as { nftables: { set?: { elem?: NftElement[] } }[] }
      return nftables
        .flatMap((item) => item.set?.elem ?? [])
        .map((element) => (typeof element === 'string' ? { ip: element, uid: '' } : fromElement(element)))
    },
    destroy: (family) => run('nft', ['delete', 'set', 'inet', nftTables.nat, probeSets[family]]),
  }
}

type NftElement = string | { elem: { val: string; comment?: string } }

function fromElement({ elem }: { elem: { val: string; comment?: string } }): ProbeSetEntry {
  return { ip: elem.val, uid: elem.comment ?? '' }
}
