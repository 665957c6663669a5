// What is written to WorkloadEntries of connected proxies: who holds the connection, since when, and whether the workload is healthy.
import { type KubeObject, type ObjectKey, resources, type WorkloadEntry } from '../../api/index.ts'
import { isKubeError, type KubeClient } from '../../kube/index.ts'
import type { HealthReport } from '../../xds/index.ts'
import { annotations, hasHealthChecks } from './entry.ts'

export interface Holder {
  readonly controller: string
  /** RFC 3339 with as many digits as needed to tell connections apart. */
  readonly connectedAt: string
}

interface HealthCondition {
  readonly type: string
  readonly status: string
  readonly message?: string
  readonly lastProbeTime?: string
  readonly lastTransitionTime?: string
}

type WithConditions = { readonly conditions?: readonly HealthCondition[] }

const mostTries = 5

export interface EntryWrites {
  get(key: ObjectKey): Promise<WorkloadEntry | undefined>
  create(entry: WorkloadEntry): Promise<void>
  /** False when a later connection holds the entry, or there is none. */
  hold(key: ObjectKey, holder: Holder): Promise<boolean>
  /** Marks the end of the connection; false when another one holds the entry by now. */
  release(key: ObjectKey, holder: Holder, at: string): Promise<boolean>
  /** Deletes an entry that is still as disconnected as it was then. */
  deleteDisconnected(entry: WorkloadEntry): Promise<boolean>
  /** Writes the condition, if this connection holds the entry and it has health checks. */
  reportHealth(key: ObjectKey, holder: Holder, report: HealthReport): Promise<void>
  forgetHealth(key: ObjectKey): Promise<void>
}

export function createEntryWrites(client: KubeClient): EntryWrites {
  const get = (key: ObjectKey) => client.get<WorkloadEntry>(resources.workloadEntries, key)

  /** Decides on what is there, and again when somebody else wrote meanwhile. Undefined: nothing was to be written. */
  async function change(
    key: ObjectKey,
    bodyOf: (entry: WorkloadEntry) => object | undefined,
    subresource?: 'status',
  ): Promise<boolean> {
    for (let attempt = 1; ; attempt += 1) {
      const entry = await get(key)
      const body = entry === undefined ? undefined : bodyOf(entry)
      if (entry === undefined || body === undefined) return false
      try {
        const guarded = withVersion(body, entry)
        const options = subresource === undefined ? {} : { subresource }
        await client.patch(resources.workloadEntries, key, { kind: 'merge', body: guarded }, options)
        return true
      } catch (error) {
        if (isKubeError(error, 404)) return false
        if (!isKubeError(error, 409) || attempt === mostTries) throw error
      }
    }
  }

  return {
    get,
    create: async (entry) => {
      await client.create(resources.workloadEntries, entry)
    },
    hold: (key, holder) =>
      change(key, (entry) =>
        isLater(entry, holder)
          ? undefined
          : {
              metadata: {
                annotations: {
                  [annotations.controller]: holder.controller,
                  [annotations.connectedAt]: holder.connectedAt,
                  [annotations.disconnectedAt]: null,
                },
              },
            },
      ),
    release: (key, holder, at) =>
      change(key, (entry) =>
        isHeldBy(entry, holder)
          ? { metadata: { annotations: { [annotations.connectedAt]: null, [annotations.disconnectedAt]: at } } }
          : undefined,
      ),
    async deleteDisconnected({ metadata }) {
      const { uid, resourceVersion } = metadata
      const preconditions = {
        ...(uid === undefined ? {} : { uid }),
        ...(resourceVersion === undefined ? {} : { resourceVersion }),
      }
      try {
        return await client.delete(resources.workloadEntries, metadata, { preconditions })
      } catch (error) {
        if (isKubeError(error, 409)) return false
        throw error
      }
    },
    reportHealth: async (key, holder, report) => {
      const bodyOf = (entry: WorkloadEntry) =>
        isHeldBy(entry, holder) && hasHealthChecks(entry) ? statusBody(entry, [healthy(entry, report)]) : undefined
      await change(key, bodyOf, 'status')
    },
    forgetHealth: async (key) => {
      const bodyOf = (entry: WorkloadEntry) =>
        conditionsOf(entry).some(isHealth) && !isConnected(entry) ? statusBody(entry, []) : undefined
      await change(key, bodyOf, 'status')
    },
  }
}

export function isConnected({ metadata }: Pick<KubeObject, 'metadata'>): boolean {
  return metadata.annotations?.[annotations.connectedAt] !== undefined
}

function isHeldBy({ metadata }: WorkloadEntry, { controller, connectedAt }: Holder): boolean {
  const { annotations: found = {} } = metadata
  return found[annotations.controller] === controller && found[annotations.connectedAt] === connectedAt
}

function isLater({ metadata }: WorkloadEntry, { connectedAt }: Holder): boolean {
  const held = metadata.annotations?.[annotations.connectedAt]
  return held !== undefined && Date.parse(held) > Date.parse(connectedAt)
}

function withVersion(body: object, { metadata: { resourceVersion } }: WorkloadEntry): object {
  const metadata = 'metadata' in body ? (body.metadata as object) : {}
  return { ...body, metadata: { ...metadata, resourceVersion } }
}

const isHealth = ({ type }: HealthCondition): boolean => type === 'Healthy'

function conditionsOf(entry: WorkloadEntry): readonly HealthCondition[] {
  return (entry.status as WithConditions | undefined)?.conditions ?? []
}

/** Conditions of other types stay. */
function statusBody(entry: WorkloadEntry, ours: readonly HealthCondition[]): object {
  return { status: { conditions: [...conditionsOf(entry).filter((condition) => !isHealth(condition)), ...ours] } }
}

function healthy(entry: WorkloadEntry, { isHealthy, message }: HealthReport): HealthCondition {
  const now = new Date().toISOString().replace(/\.\d+Z$/, 'Z')
  const status = isHealthy ? 'True' : 'False'
  const old = conditionsOf(entry).find(isHealth)
  const since = old?.status === status ? old.lastTransitionTime : undefined
  return { type: 'Healthy', status, message, lastProbeTime: now, lastTransitionTime: since ?? now }
}
