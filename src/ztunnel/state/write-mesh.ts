// Writes one push into shared memory, and notes what it changes.
import type { Transaction } from '../../shared-memory/index.ts'
import type { Policy, Service, Workload } from '../model.ts'
import { createFieldWriter } from './fields.ts'
import { createSharedTexts } from './shared-texts.ts'
import { createPolicyLoader } from './stored-policy.ts'
import { createServiceLoader } from './stored-service.ts'
import { createWorkloadLoader } from './stored-workload.ts'
import { tables } from './tables.ts'
import { policyKey, serviceKey } from './view.ts'
import { createPolicyWriter } from './write-policy.ts'
import { createServiceWriter } from './write-service.ts'
import { createWorkloadWriter, type Placed } from './write-workload.ts'

export interface Replaced<T> {
  readonly key: string
  readonly old?: T
  readonly new?: T
}

export interface Notes {
  readonly workloads: Map<string, Replaced<Workload>>
  readonly services: Map<string, Replaced<Service>>
  readonly policies: Map<string, Replaced<Policy>>
  readonly signal: { workloads: boolean; services: boolean; policies: boolean }
}

export const createNotes = (): Notes => ({
  workloads: new Map(),
  services: new Map(),
  policies: new Map(),
  signal: { workloads: false, services: false, policies: false },
})

export interface Wanted {
  readonly all: boolean
  local(workload: Workload): boolean
}

export interface PushWriter {
  putWorkload(workload: Workload): void
  putService(service: Service): void
  putPolicy(policy: Policy): void
  /** Of a workload, or else of a service. */
  removeAddress(key: string): void
  removePolicy(key: string): void
}

export interface MeshWriter {
  /** Writes one push. What it changes is noted as it goes, as far as it is wanted. */
  write(transaction: Transaction, changed: Notes, wanted: Wanted, fill: (push: PushWriter) => void): void
  /** The transaction is complete. */
  commit(): void
  /** The transaction has failed. */
  abort(): void
}

export function createMeshWriter(isLocal: (workload: Workload) => boolean): MeshWriter {
  const texts = createSharedTexts()
  const fields = createFieldWriter()
  let order = 0
  const nextOrder = (): number => {
    order += 1
    return order
  }
  const workloads = createWorkloadWriter(fields, texts, isLocal, nextOrder)
  const services = createServiceWriter(fields)
  const policies = createPolicyWriter(fields, nextOrder)
  const loadWorkload = createWorkloadLoader()
  const loadService = createServiceLoader()
  const loadPolicy = createPolicyLoader()

  function pushWriter(transaction: Transaction, changed: Notes, wanted: Wanted): PushWriter {
    function placed<T>(
      table: number,
      key: string,
      load: (view: Transaction, leaf: number) => T,
    ): Placed<T> | undefined {
      const leaf = transaction.find(table, key)
      return leaf === 0 ? undefined : { leaf, value: load(transaction, leaf) }
    }
    function noteWorkload(key: string, old: Workload | undefined, now: Workload | undefined): void {
      changed.signal.workloads = true
      const is = wanted.all || [old, now].some((one) => one !== undefined && wanted.local(one))
      if (is) note(changed.workloads, key, old, now)
    }
    function noteService(key: string, old: Service | undefined, now: Service | undefined): void {
      changed.signal.services = true
      if (wanted.all) note(changed.services, key, old, now)
    }
    function notePolicy(key: string, old: Policy | undefined, now: Policy | undefined): void {
      changed.signal.policies = true
      if (wanted.all) note(changed.policies, key, old, now)
    }

    return {
      putWorkload(workload: Workload) {
        const old = placed(tables.workloads, workload.uid, loadWorkload)
        workloads.put(transaction, workload, old)
        noteWorkload(workload.uid, old?.value, workload)
      },
      putService(service: Service) {
        const old = placed(tables.services, serviceKey(service), loadService)
        services.put(transaction, service, old)
        noteService(serviceKey(service), old?.value, service)
      },
      putPolicy(policy: Policy) {
        const old = placed(tables.policies, policyKey(policy), loadPolicy)?.value
        policies.put(transaction, policy, old)
        notePolicy(policyKey(policy), old, policy)
      },
      removeAddress(key: string) {
        const workload = placed(tables.workloads, key, loadWorkload)
        if (workload !== undefined) {
          workloads.remove(transaction, workload)
          noteWorkload(key, workload.value, undefined)
          return
        }
        const service = placed(tables.services, key, loadService)
        if (service === undefined) return
        services.remove(transaction, service)
        noteService(key, service.value, undefined)
      },
      removePolicy(key: string) {
        const policy = placed(tables.policies, key, loadPolicy)?.value
        if (policy === undefined) return
        policies.remove(transaction, policy)
        notePolicy(key, policy, undefined)
      },
    }
  }

  return {
    write(transaction, changed, wanted, fill) {
      fill(pushWriter(transaction, changed, wanted))
      texts.sweep(transaction)
    },
    commit: texts.commit,
    abort: texts.abort,
  }
}

function note<T>(changes: Map<string, Replaced<T>>, key: string, old: T | undefined, now: T | undefined): void {
  const before = changes.has(key) ? changes.get(key)?.old : old
  changes.set(key, {
    key,
    ...(before === undefined ? {} : { old: before }),
    ...(now === undefined ? {} : { new: now }),
  })
}
