// Decides which ServiceEntry hosts get which automatic address. It only decides: writing is its caller's.
import { objectName, type ServiceEntry } from '../../../api/index.ts'
import { masked, type Prefix, parseIp, parsePrefix } from '../addresses.ts'
import { compareText } from '../model.ts'
import { hostTakesAllocatedAddresses, takesAllocatedAddresses } from '../services/service-entry.ts'
import { AddressRange } from './address-range.ts'

export interface HostAddress {
  readonly host: string
  readonly value: string
}

/** What `status.addresses` of an entry has to become. */
export interface AllocationWrite {
  readonly entry: ServiceEntry
  readonly addresses: readonly HostAddress[]
}

export interface AllocatorOptions {
  readonly ipv4Prefix: string
  readonly ipv6Prefix: string
  /** Told when a range has no address left for a host. */
  readonly exhausted: (entry: string, host: string, prefix: string) => void
}

/** Addresses that an entry holds, by host. */
type Assignment = Map<string, readonly string[]>

export class AddressAllocator {
  readonly #options: AllocatorOptions
  readonly #ranges: readonly (readonly [prefix: string, range: AddressRange])[]
  readonly #entries = new Map<string, ServiceEntry>()
  readonly #assigned = new Map<string, Assignment>()
  readonly #holders = new Map<string, Set<string>>()
  readonly #written = new Map<string, readonly Prefix[]>()

  constructor(options: AllocatorOptions) {
    this.#options = options
    this.#ranges = [options.ipv4Prefix, options.ipv6Prefix].map((prefix) => [prefix, new AddressRange(prefix)] as const)
  }

  /** Takes in the present state of entries (undefined: gone) and tells which statuses to write. */
  update(changes: Iterable<readonly [key: string, entry: ServiceEntry | undefined]>): AllocationWrite[] {
    const affected = new Set<string>()
    for (const [key, entry] of changes) {
      if (entry === undefined) this.#forget(key)
      else this.#observe(key, entry, affected)
    }
    const inOrder = [...affected].flatMap((key) => {
      const entry = this.#entries.get(key)
      return entry === undefined ? [] : [[key, entry] as const]
    })
    return inOrder.sort(([a], [b]) => this.#compareAge(a, b)).flatMap(([key, entry]) => this.#decide(key, entry))
  }

  #observe(key: string, entry: ServiceEntry, affected: Set<string>): void {
    this.#entries.set(key, entry)
    affected.add(key)
    const written = (entry.spec?.addresses ?? []).map(parsePrefix).filter((prefix) => prefix !== undefined)
    this.#written.set(key, written)
    for (const prefix of written) if (isSingle(prefix)) this.#reserve(prefix.address)
    for (const { value } of entry.status?.addresses ?? []) {
      const address = parseIp(value)
      if (address !== undefined) this.#reserve(address)
    }
    if (written.length > 0) {
      for (const [address, holders] of this.#holders) {
        if (this.#isWritten(address, '')) for (const holder of holders) affected.add(holder)
      }
    }
    if (!takesAllocatedAddresses(entry)) {
      this.#release(key)
      return
    }
    // What stands in the status is taken over the first time; after that the decision here counts.
    if (!this.#assigned.has(key)) this.#assign(key, byHost(entry))
    for (const addresses of this.#assigned.get(key)?.values() ?? []) {
      for (const address of addresses) for (const holder of this.#holders.get(address) ?? []) affected.add(holder)
    }
  }

  #decide(key: string, entry: ServiceEntry): AllocationWrite[] {
    if (!takesAllocatedAddresses(entry)) return this.#write(entry, [])
    const hosts = [...new Set(entry.spec?.hosts ?? [])].filter((host) => hostTakesAllocatedAddresses(entry, host))
    const held = this.#assigned.get(key) ?? new Map<string, readonly string[]>()
    const lost = [...held.values()].flat().some((address) => this.#isLost(key, address))
    const next: Assignment = new Map()
    for (const host of hosts) {
      const kept = lost ? undefined : held.get(host)
      next.set(host, kept !== undefined && kept.length > 0 ? kept : this.#allocate(entry, host))
    }
    this.#assign(key, next)
    return this.#write(
      entry,
      [...next].flatMap(([host, addresses]) => addresses.map((value) => ({ host, value }))),
    )
  }

  #write(entry: ServiceEntry, addresses: readonly HostAddress[]): AllocationWrite[] {
    const text = (list: Iterable<{ readonly host?: string; readonly value: string }>): string =>
      JSON.stringify([...list].map(({ host, value }) => `${host} ${value}`).sort())
    return text(entry.status?.addresses ?? []) === text(addresses) ? [] : [{ entry, addresses }]
  }

  #allocate(entry: ServiceEntry, host: string): readonly string[] {
    return this.#ranges.flatMap(([prefix, range]) => {
      const address = range.take((candidate) => !this.#covers(candidate, ''))
      if (address === undefined) this.#options.exhausted(objectName(entry), host, prefix)
      return address === undefined ? [] : [address]
    })
  }

  /** An address is lost to a user who wrote it down, and to an older entry that holds it too. */
  #isLost(key: string, address: string): boolean {
    if (this.#isWritten(address, key)) return true
    return [...(this.#holders.get(address) ?? [])].some((other) => other !== key && this.#compareAge(other, key) < 0)
  }

  #isWritten(address: string, except: string): boolean {
    const bytes = parseIp(address)
    return bytes !== undefined && this.#covers(bytes, except)
  }

  #covers(address: Uint8Array, except: string): boolean {
    for (const [key, prefixes] of this.#written) {
      if (key !== except && prefixes.some((prefix) => contains(prefix, address))) return true
    }
    return false
  }

  #compareAge(a: string, b: string): number {
    const created = (key: string): string => this.#entries.get(key)?.metadata.creationTimestamp ?? ''
    return compareText(created(a), created(b)) || compareText(a, b)
  }

  /** Addresses given up stay reserved, so that nobody else is reached under them for a while. */
  #assign(key: string, next: Assignment): void {
    this.#release(key)
    this.#assigned.set(key, next)
    for (const address of [...next.values()].flat()) {
      const bytes = parseIp(address)
      if (bytes !== undefined) this.#reserve(bytes)
      this.#holders.set(address, (this.#holders.get(address) ?? new Set()).add(key))
    }
  }

  #reserve(address: Uint8Array): void {
    for (const [, range] of this.#ranges) range.reserve(address)
  }

  #release(key: string): void {
    for (const address of [...(this.#assigned.get(key)?.values() ?? [])].flat()) {
      const holders = this.#holders.get(address)
      holders?.delete(key)
      if (holders?.size === 0) this.#holders.delete(address)
    }
    this.#assigned.delete(key)
  }

  #forget(key: string): void {
    this.#release(key)
    this.#written.delete(key)
    this.#entries.delete(key)
  }
}

function byHost(entry: ServiceEntry): Assignment {
  const assignment: Assignment = new Map()
  for (const { host, value } of entry.status?.addresses ?? []) {
    if (host !== undefined) assignment.set(host, [...(assignment.get(host) ?? []), value])
  }
  return assignment
}

const isSingle = ({ address, length }: Prefix): boolean => length === address.length * 8

function contains(prefix: Prefix, address: Uint8Array): boolean {
  if (prefix.address.length !== address.length) return false
  const start = masked(prefix)
  return masked({ address, length: prefix.length }).every((byte, at) => byte === start[at])
}
