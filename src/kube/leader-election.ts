// One leader among the processes that try for a Lease: only it may write.
import { setTimeout as sleep } from 'node:timers/promises'
import { type KubeObject, resources } from '../api/index.ts'
import type { Scope } from '../observability/index.ts'
import { isKubeError } from './errors.ts'
import type { KubeClient } from './types.ts'

export interface LeaderElectionOptions {
  readonly client: KubeClient
  readonly namespace: string
  readonly name: string
  /** Different for every process; the same again after a restart of the process in the same pod, which then needs not wait. */
  readonly identity: string
  /** Runs while this process leads; must end soon after its signal aborts. */
  readonly lead: (signal: AbortSignal) => Promise<void>
  readonly log: Scope
  readonly times?: Partial<LeaseTimes>
}

export interface LeaseTimes {
  /** How long a lease holds without renewal. */
  readonly leaseMs: number
  /** A leader that could not renew for so long steps down. */
  readonly renewDeadlineMs: number
  readonly retryMs: number
}

const defaultTimes: LeaseTimes = { leaseMs: 15_000, renewDeadlineMs: 10_000, retryMs: 2_000 }

type Lease = KubeObject<LeaseSpec>
interface LeaseSpec {
  holderIdentity?: string
  leaseDurationSeconds?: number
  acquireTime?: string
  renewTime?: string
  leaseTransitions?: number
}

/** Tries to lead until the signal aborts; then steps down and gives the lease back. When `lead` rejects, the lease is given back and tried for again. */
export async function runLeaderElection(options: LeaderElectionOptions, signal: AbortSignal): Promise<void> {
  const times = { ...defaultTimes, ...options.times }
  const holder = leaseHolder(options, times)
  while (!signal.aborted) {
    if (await holder.tryHold()) {
      options.log.info('leading', { lease: options.name, identity: options.identity })
      await leadWhileHolding(options, holder, times, signal)
      options.log.info('no longer leading', { lease: options.name, identity: options.identity })
    }
    await pause(times.retryMs * (0.8 + Math.random() * 0.4), signal)
  }
}

async function leadWhileHolding(
  options: LeaderElectionOptions,
  holder: LeaseHolder,
  times: LeaseTimes,
  signal: AbortSignal,
): Promise<void> {
  const lost = new AbortController()
  const ends = AbortSignal.any([signal, lost.signal])
  const leading = options.lead(ends).catch((error: unknown) => {
    if (ends.aborted) return
    // The next try of any process, also of this one, may do better.
    options.log.error('the work of the leader failed', { lease: options.name, reason: textOf(error) })
    lost.abort()
  })
  let heldAt = performance.now()
  let isTaken = false
  while (!ends.aborted) {
    await pause(times.retryMs, ends)
    if (ends.aborted) break
    const outcome = await holder.renew()
    if (outcome === 'held') heldAt = performance.now()
    isTaken = outcome === 'taken'
    if (isTaken || performance.now() - heldAt > times.renewDeadlineMs) lost.abort()
  }
  await leading
  if (!isTaken) await holder.release()
}

interface LeaseHolder {
  /** True when the lease is ours now. */
  tryHold(): Promise<boolean>
  renew(): Promise<'held' | 'taken' | 'unknown'>
  release(): Promise<void>
}

function leaseHolder(options: LeaderElectionOptions, times: LeaseTimes): LeaseHolder {
  const { client, namespace, name, identity, log } = options
  const key = { namespace, name }
  let seen: { readonly version: string; readonly at: number } | undefined

  function specOf(old: LeaseSpec | undefined): LeaseSpec {
    const now = new Date().toISOString().replace('Z', '000Z')
    const ours = old?.holderIdentity === identity
    return {
      holderIdentity: identity,
      leaseDurationSeconds: Math.max(1, Math.ceil(times.leaseMs / 1000)),
      acquireTime: ours ? (old.acquireTime ?? now) : now,
      renewTime: now,
      leaseTransitions: (old?.leaseTransitions ?? 0) + (ours || old === undefined ? 0 : 1),
    }
  }

  /** Judged by how long the lease didn't change in front of our eyes: clocks of others don't matter. */
  function isExpired(lease: Lease): boolean {
    const version = lease.metadata.resourceVersion ?? ''
    if (seen?.version !== version) seen = { version, at: performance.now() }
    const holds = (lease.spec?.leaseDurationSeconds ?? 0) * 1000
    return performance.now() - seen.at > holds
  }

  async function write(lease: Lease | undefined): Promise<void> {
    if (lease === undefined) {
      const created: Lease = {
        apiVersion: 'coordination.k8s.io/v1',
        kind: 'Lease',
        metadata: key,
        spec: specOf(undefined),
      }
      await client.create(resources.leases, created)
    } else {
      await client.replace(resources.leases, { ...lease, spec: { ...lease.spec, ...specOf(lease.spec) } })
    }
  }

  async function hold(): Promise<'held' | 'taken' | 'unknown'> {
    try {
      const lease = await client.get<Lease>(resources.leases, key)
      const holding = lease?.spec?.holderIdentity ?? ''
      if (lease !== undefined && holding !== '' && holding !== identity && !isExpired(lease)) return 'taken'
      await write(lease)
      return 'held'
    } catch (error) {
      if (isKubeError(error, 409)) return 'unknown'
      log.debug('the lease could not be read or written', {
        lease: name,
        reason: textOf(error),
      })
      return 'unknown'
    }
  }

  return {
    tryHold: async () => (await hold()) === 'held',
    renew: hold,
    async release() {
      try {
        const lease = await client.get<Lease>(resources.leases, key)
        if (lease?.spec?.holderIdentity !== identity) return
        await client.replace(resources.leases, { ...lease, spec: { ...lease.spec, holderIdentity: '' } })
      } catch (error) {
        log.debug('the lease could not be given back; it will expire', {
          lease: name,
          reason: textOf(error),
        })
      }
    },
  }
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  try {
    await sleep(ms, undefined, { signal })
  } catch {
    // Aborted: the caller looks at the signal.
  }
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
