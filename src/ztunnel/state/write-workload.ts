// Workloads into shared memory, with every index that leads to them.
import type { Transaction } from '../../shared-memory/index.ts'
import type { Workload } from '../model.ts'
import type { FieldWriter } from './fields.ts'
import type { SharedTexts } from './shared-texts.ts'
import { commonPlace, commonText, storeWorkload } from './stored-workload.ts'
import { addressKey, hostnameKey, ordered, podKey, tables } from './tables.ts'
import { movePlace } from './write-places.ts'

export interface Placed<T> {
  readonly leaf: number
  readonly value: T
}

export interface WorkloadWriter {
  /** `old`: what the transaction shows now under its uid. */
  put(transaction: Transaction, workload: Workload, old: Placed<Workload> | undefined): void
  remove(transaction: Transaction, old: Placed<Workload>): void
}

export function createWorkloadWriter(
  fields: FieldWriter,
  texts: SharedTexts,
  isLocal: (workload: Workload) => boolean,
  nextOrder: () => number,
): WorkloadWriter {
  /** Every index entry of the old one is replaced, dropped, or joined by those that are new. */
  function link(transaction: Transaction, old: Placed<Workload> | undefined, now: Placed<Workload> | undefined): void {
    const lists = [
      [tables.workloadAddresses, addressKeys] as const,
      [tables.workloadHostnames, hostnameKeys] as const,
      [tables.pods, podKeys] as const,
    ]
    for (const [table, keysOf] of lists) {
      const before = old === undefined ? noKeys : keysOf(old.value, isLocal)
      const after = now === undefined ? noKeys : keysOf(now.value, isLocal)
      for (const key of before) {
        if (!after.includes(key)) movePlace(transaction, table, key, old?.leaf ?? 0, 0)
      }
      for (const key of after) movePlace(transaction, table, key, old?.leaf ?? 0, now?.leaf ?? 0)
    }
    const uid = (now ?? old)?.value.uid ?? ''
    const order = now === undefined ? 0 : nextOrder()
    for (const key of old?.value.services.keys() ?? noKeys) {
      if (now?.value.services.has(key) !== true) transaction.removeFrom(tables.members, key, uid)
    }
    for (const key of now?.value.services.keys() ?? noKeys) {
      transaction.putIn(tables.members, key, uid, ordered(now?.leaf ?? 0, order))
    }
  }

  return {
    put(transaction, workload, old) {
      const common = texts.use(transaction, commonText(workload))
      if (old !== undefined) texts.leave(commonPlace(transaction, old.leaf))
      const leaf = transaction.put(tables.workloads, workload.uid, storeWorkload(fields, workload, common))
      link(transaction, old, { leaf, value: workload })
    },
    remove(transaction, old) {
      link(transaction, old, undefined)
      texts.leave(commonPlace(transaction, old.leaf))
      transaction.remove(tables.workloads, old.value.uid)
    },
  }
}

const noKeys: readonly string[] = []

/** Host-network pods share the address of their node: an address never names them. */
function addressKeys({ networkMode, network, addresses }: Workload): readonly string[] {
  return networkMode === 'HostNetwork' ? noKeys : addresses.map((ip) => addressKey(network, ip))
}

const hostnameKeys = ({ namespace, hostname }: Workload): readonly string[] =>
  hostname === '' ? noKeys : [hostnameKey(namespace, hostname)]

const podKeys = (workload: Workload, isLocal: (workload: Workload) => boolean): readonly string[] =>
  isLocal(workload) ? [podKey(workload)] : noKeys
