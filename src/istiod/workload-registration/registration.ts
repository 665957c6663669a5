// Workloads that register themselves: while a proxy that belongs to a WorkloadGroup is connected, it has a WorkloadEntry.
import { setTimeout as sleep } from 'node:timers/promises'
import { status } from '@grpc/grpc-js'
import type { ObjectKey, WorkloadEntry } from '../../api/index.ts'
import { type Informer, isKubeError, type KubeClient } from '../../kube/index.ts'
import type { Scope } from '../../observability/index.ts'
import { type Attendance, type HealthReport, StreamError } from '../../xds/index.ts'
import { admitRegistration } from './admission.ts'
import {
  annotations,
  entryName,
  entryOfGroup,
  hasHealthChecks,
  type RegisteringProxy,
  textOf,
  type WorkloadGroup,
} from './entry.ts'
import { createEntryWrites, type Holder, isConnected } from './entry-writes.ts'
import type { RegistrationMetrics } from './metrics.ts'

export interface RegistrationOptions {
  readonly client: KubeClient
  readonly groups: Pick<Informer<WorkloadGroup>, 'get' | 'subscribe'>
  readonly entries: Pick<Informer<WorkloadEntry>, 'list' | 'subscribe'>
  /** This process among those that may hold connections. */
  readonly controller: string
  /** How long an entry outlives its connection. */
  readonly graceMs: number
  /** No connection is older; undefined: there is no such bound. */
  readonly maxConnectionAgeMs: number | undefined
  /** False: whoever says to be a member is one. */
  readonly validatesIdentity: boolean
  readonly registers: boolean
  readonly checksHealth: boolean
  readonly metrics: RegistrationMetrics
  readonly log: Scope
}

export interface WorkloadRegistration extends AsyncDisposable {
  /** Undefined for proxies that have no entry to be kept. Rejects with a StreamError for those that may not or cannot be registered. */
  connected(proxy: RegisteringProxy): Promise<Attendance | undefined>
  /** Removes what nobody removed, such as entries of a process that is gone, until the signal aborts. One process does it. */
  sweep(signal: AbortSignal): Promise<void>
}

interface Connected {
  readonly proxy: RegisteringProxy
  readonly key: ObjectKey
  readonly holder: Holder
  /** Absent: the entry was there before. */
  readonly group?: string
}

/** At most twenty entries are deleted a second, so that a lost network does not become a burst of writes. */
const deletionPauseMs = 50

/** What one workload says of its health is written no more often: each write is one to the API server, and news for the whole mesh. */
const healthPauseMs = 1_000

const longestTimerMs = 2 ** 31 - 1

/** How often abandoned entries are looked for. */
export function sweepPauseMs(graceMs: number): number {
  return Math.min(Math.max(graceMs * 10, 1_000), longestTimerMs)
}

export function createWorkloadRegistration(options: RegistrationOptions): WorkloadRegistration {
  const { groups, entries, metrics, log } = options
  const writes = createEntryWrites(options.client)
  /** Several connections may be for one entry: the latest first. */
  const held = new Map<string, readonly Connected[]>()
  const turns = new Map<string, Promise<void>>()
  const stop = new AbortController()
  let lastConnectedAt = 0
  let deletions: Promise<unknown> = Promise.resolve()

  /** Work on one entry is done in its order. Failures are logged. */
  function inTurn(key: ObjectKey, what: string, work: () => Promise<void>): Promise<void> {
    const name = nameOf(key)
    const turn = (turns.get(name) ?? Promise.resolve()).then(work).catch((error: unknown) => {
      metrics.failed()
      log.error(what, { entry: name, reason: error instanceof Error ? error.message : String(error) })
    })
    turns.set(name, turn)
    void turn.then(() => {
      if (turns.get(name) === turn) turns.delete(name)
    })
    return turn
  }

  async function connected(proxy: RegisteringProxy): Promise<Attendance | undefined> {
    const group = options.registers ? textOf(proxy.metadata.AUTO_REGISTER_GROUP) : ''
    const name = options.checksHealth ? textOf(proxy.metadata.WORKLOAD_ENTRY) : ''
    if (group === '' && name === '') return undefined
    const holder = { controller: options.controller, connectedAt: nextTime() }
    const one: Connected =
      group === ''
        ? { proxy, holder, key: { namespace: proxy.namespace, name } }
        : { proxy, holder, group, key: { namespace: proxy.namespace, name: entryName(group, proxy) } }
    try {
      await (group === '' ? holdWritten(one) : register(one))
    } catch (error) {
      metrics.failed()
      throw error instanceof StreamError
        ? error
        : new StreamError(status.UNAVAILABLE, `registration of ${proxy.proxyId} failed: ${String(error)}`)
    }
    hold(one)
    log.info('a workload is registered', { entry: nameOf(one.key), proxy: proxy.proxyId })
    return { health: options.checksHealth ? healthOf(one) : () => {}, end: () => end(one) }
  }

  function hold(one: Connected): void {
    const name = nameOf(one.key)
    const all = [...(held.get(name) ?? []), one]
    held.set(
      name,
      all.sort((a, b) => (a.holder.connectedAt > b.holder.connectedAt ? -1 : 1)),
    )
  }

  function letGo(one: Connected): void {
    const name = nameOf(one.key)
    const others = (held.get(name) ?? []).filter((other) => other !== one)
    if (others.length === 0) held.delete(name)
    else held.set(name, others)
  }

  /** Of the connections for an entry, the one that it is kept for. */
  function holderOf(key: ObjectKey): Connected | undefined {
    return held.get(nameOf(key))?.[0]
  }

  /** Of the reports that come while an earlier one is written, or soon after it, the last one counts. */
  function healthOf({ key, holder }: Connected): (report: HealthReport) => void {
    let latest: HealthReport | undefined
    let isWaiting = false
    let nextAt = 0

    async function write(): Promise<void> {
      isWaiting = true
      if (await waited(Math.max(0, nextAt - performance.now()), stop.signal)) {
        await inTurn(key, 'the health of a workload could not be written', async () => {
          const report = latest
          latest = undefined
          nextAt = performance.now() + healthPauseMs
          if (report !== undefined) await writes.reportHealth(key, holder, report)
        })
      }
      isWaiting = false
      if (latest !== undefined && !stop.signal.aborted) await write()
    }

    return (report) => {
      latest = report
      if (!isWaiting) void write()
    }
  }

  async function register(one: Connected): Promise<void> {
    const { proxy, key, holder, group = '' } = one
    const groupObject = groups.get({ namespace: proxy.namespace, name: group })
    if (options.validatesIdentity) admitRegistration(proxy, groupObject?.spec?.template?.serviceAccount)
    if (groupObject === undefined) {
      const missing = `cannot find WorkloadGroup ${proxy.namespace}/${group}`
      throw new StreamError(
        status.FAILED_PRECONDITION,
        `auto-registration WorkloadEntry of ${proxy.proxyId} failed: ${missing}`,
      )
    }
    const present = await writes.get(key)
    if (present === undefined && (await create(entryOfGroup(groupObject, proxy, holder)))) {
      metrics.registered()
      return
    }
    const existing = present ?? (await writes.get(key))
    if (existing === undefined) throw new StreamError(status.UNAVAILABLE, `${nameOf(key)} comes and goes: try again`)
    if (existing.metadata.annotations?.[annotations.group] !== group) {
      throw new StreamError(
        status.FAILED_PRECONDITION,
        `auto-registration WorkloadEntry of ${proxy.proxyId} failed: ${nameOf(key)} is there and not of WorkloadGroup ${group}`,
      )
    }
    if (await writes.hold(key, holder)) metrics.updated()
  }

  /** False when somebody else made it meanwhile. */
  async function create(entry: WorkloadEntry): Promise<boolean> {
    try {
      await writes.create(entry)
      return true
    } catch (error) {
      if (isKubeError(error, 409)) return false
      throw error
    }
  }

  async function holdWritten({ proxy, key, holder }: Connected): Promise<void> {
    const entry = await writes.get(key)
    if (options.validatesIdentity) admitRegistration(proxy, entry?.spec?.serviceAccount)
    if (entry === undefined || !hasHealthChecks(entry)) {
      throw new StreamError(
        status.FAILED_PRECONDITION,
        `health checks of ${proxy.proxyId}: expected a WorkloadEntry ${nameOf(key)} with the annotation ${annotations.healthChecks}: "true"`,
      )
    }
    await writes.hold(key, holder)
  }

  function end(one: Connected): void {
    const { key, holder } = one
    letGo(one)
    const disconnectedAt = new Date().toISOString()
    void inTurn(key, 'the end of a connection could not be written', async () => {
      if (!(await writes.release(key, holder, disconnectedAt))) return
      metrics.unregistered()
      void cleanLater(one, disconnectedAt)
    })
  }

  async function cleanLater(one: Connected, disconnectedAt: string): Promise<void> {
    if (!(await waited(options.graceMs, stop.signal))) return
    await inTurn(one.key, 'an entry without a connection could not be removed', async () => {
      const entry = await writes.get(one.key)
      if (entry?.metadata.annotations?.[annotations.disconnectedAt] === disconnectedAt) await clean(entry)
    })
  }

  /** What was registered goes; of what people wrote, only the health. */
  async function clean(entry: WorkloadEntry): Promise<void> {
    if (entry.metadata.annotations?.[annotations.group] === undefined) return writes.forgetHealth(entry.metadata)
    const deletion = deletions.then(async () => {
      if (await writes.deleteDisconnected(entry)) {
        metrics.deleted()
        log.info('a workload is no longer registered', { entry: nameOf(entry.metadata) })
      }
    })
    deletions = deletion.then(
      () => waited(deletionPauseMs, stop.signal),
      () => waited(deletionPauseMs, stop.signal),
    )
    await deletion
  }

  async function sweep(signal: AbortSignal): Promise<void> {
    const ends = AbortSignal.any([signal, stop.signal])
    while (await waited(sweepPauseMs(options.graceMs), ends)) {
      for (const entry of entries.list()) {
        if (ends.aborted) return
        if (held.has(nameOf(entry.metadata)) || !isAbandoned(entry)) continue
        await inTurn(entry.metadata, 'an abandoned entry could not be removed', async () => {
          const now = await writes.get(entry.metadata)
          if (now !== undefined && isAbandoned(now)) await clean(now)
        })
      }
    }
  }

  function isAbandoned(entry: WorkloadEntry): boolean {
    const { connectedAt, disconnectedAt } = timesOf(entry)
    if (isConnected(entry)) {
      const { maxConnectionAgeMs } = options
      return maxConnectionAgeMs !== undefined && Date.now() - connectedAt > 1.5 * maxConnectionAgeMs
    }
    return Date.now() - disconnectedAt > options.graceMs
  }

  /** Somebody deleted the entry of a connected proxy, its group is back, or a later connection for the entry is gone. */
  function registerAgain(one: Connected): void {
    void inTurn(one.key, 'a workload could not be registered again', async () => {
      if (holderOf(one.key) !== one) return
      const entry = await writes.get(one.key)
      if (entry !== undefined && isConnected(entry)) return
      if (one.group !== undefined) await register(one)
      else if (entry !== undefined) await holdWritten(one)
    })
  }

  /** Without its group it is gone with it. */
  function hasGroup({ proxy, group }: Connected): boolean {
    return group !== undefined && groups.get({ namespace: proxy.namespace, name: group }) !== undefined
  }

  const subscriptions = [
    entries.subscribe((changes) => {
      for (const { kind, object } of changes) {
        const one = holderOf(object.metadata)
        if (one === undefined) continue
        const isFree = kind === 'deleted' ? one.group !== undefined : !isConnected(object)
        if (isFree && (one.group === undefined || hasGroup(one))) registerAgain(one)
      }
    }),
    groups.subscribe((changes) => {
      for (const { kind, object } of changes) {
        if (kind !== 'added') continue
        for (const [one] of held.values()) {
          if (one === undefined) continue
          const isOfIt = one.group === object.metadata.name && one.proxy.namespace === object.metadata.namespace
          if (isOfIt) registerAgain(one)
        }
      }
    }),
  ]

  /** Later than every one before: two connections of one moment must be told apart. */
  function nextTime(): string {
    lastConnectedAt = Math.max(Date.now(), lastConnectedAt + 1)
    return new Date(lastConnectedAt).toISOString()
  }

  return {
    connected,
    sweep,
    async [Symbol.asyncDispose]() {
      for (const unsubscribe of subscriptions) unsubscribe()
      // The ends of connections are written; what is to be removed later is another process's by then.
      await Promise.race([Promise.all(turns.values()), sleep(2_000, undefined, { ref: false })])
      stop.abort()
    },
  }
}

function timesOf({ metadata }: WorkloadEntry): { readonly connectedAt: number; readonly disconnectedAt: number } {
  const time = (name: string): number => Date.parse(metadata.annotations?.[name] ?? '')
  return { connectedAt: time(annotations.connectedAt), disconnectedAt: time(annotations.disconnectedAt) }
}

function nameOf({ namespace = '', name }: ObjectKey): string {
  return `${namespace}/${name}`
}

/** False when the signal aborts first. */
async function waited(ms: number, signal: AbortSignal): Promise<boolean> {
  try {
    await sleep(Math.min(ms, longestTimerMs), undefined, { signal, ref: false })
    return true
  } catch {
    return false
  }
}
