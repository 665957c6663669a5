// Services into shared memory, with every index that leads to them. A service that is already in a list keeps its position.
import type { Transaction } from '../../shared-memory/index.ts'
import type { Service } from '../model.ts'
import { parseCidr } from './address.ts'
import type { FieldWriter } from './fields.ts'
import { storeService } from './stored-service.ts'
import { addressKey, blockKeyOf, lengthKey, tables } from './tables.ts'
import { serviceKey } from './view.ts'
import { replacePlace } from './write-places.ts'
import type { Placed } from './write-workload.ts'

export interface ServiceWriter {
  /** `old`: what the transaction shows now under its key. */
  put(transaction: Transaction, service: Service, old: Placed<Service> | undefined): void
  remove(transaction: Transaction, old: Placed<Service>): void
}

export function createServiceWriter(fields: FieldWriter): ServiceWriter {
  return {
    put(transaction, service, old) {
      const leaf = transaction.put(tables.services, serviceKey(service), storeService(fields, service))
      link(transaction, old, { leaf, value: service })
    },
    remove(transaction, old) {
      link(transaction, old, undefined)
      transaction.remove(tables.services, serviceKey(old.value))
    },
  }
}

function link(transaction: Transaction, old: Placed<Service> | undefined, now: Placed<Service> | undefined): void {
  const lists = [
    [tables.serviceHostnames, hostnameKeys] as const,
    [tables.vips, vipKeys] as const,
    [tables.blocks, blockKeys] as const,
  ]
  for (const [table, keysOf] of lists) {
    const before = old === undefined ? new Set<string>() : keysOf(old.value)
    const after = now === undefined ? new Set<string>() : keysOf(now.value)
    for (const key of before) if (!after.has(key)) replacePlace(transaction, table, key, old?.leaf ?? 0, 0)
    for (const key of after) replacePlace(transaction, table, key, old?.leaf ?? 0, now?.leaf ?? 0)
  }
  for (const [network, length] of old === undefined ? [] : lengthsOf(old.value)) {
    countLength(transaction, network, length, -1)
  }
  for (const [network, length] of now === undefined ? [] : lengthsOf(now.value)) {
    countLength(transaction, network, length, 1)
  }
}

const hostnameKeys = ({ hostname }: Service): ReadonlySet<string> => new Set([hostname.toLowerCase()])

const vipKeys = ({ vips }: Service): ReadonlySet<string> =>
  new Set(vips.map(({ network, ip }) => addressKey(network, ip)))

function blockKeys({ cidrVips }: Service): ReadonlySet<string> {
  const keys = new Set<string>()
  for (const { network, cidr } of cidrVips) {
    const parsed = parseCidr(cidr)
    if (parsed !== undefined) keys.add(blockKeyOf(network, parsed))
  }
  return keys
}

function* lengthsOf({ cidrVips }: Service): Generator<readonly [network: string, length: string]> {
  for (const { network, cidr } of cidrVips) {
    const parsed = parseCidr(cidr)
    if (parsed !== undefined) yield [network, lengthKey(parsed.family, parsed.length)]
  }
}

function countLength(transaction: Transaction, network: string, length: string, change: 1 | -1): void {
  const entry = transaction.findIn(transaction.find(tables.blockLengths, network), length)
  const count = (entry === 0 ? 0 : transaction.wordOf(entry, 0)) + change
  if (count > 0) transaction.putIn(tables.blockLengths, network, length, [count])
  else transaction.removeFrom(tables.blockLengths, network, length)
}
