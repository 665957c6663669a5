// A cache of objects kept current by list and watch, through restarts of the server, broken connections and 410 Gone.
import type { KubeObject, Resource } from '../api/index.ts'
import type { Scope } from '../observability/index.ts'
import { createBackoff } from './backoff.ts'
import { isKubeError, KubeError } from './errors.ts'
import { createInformerStore } from './informer-store.ts'
import { listAll } from './list.ts'
import { collectionPath, selection, withQuery } from './paths.ts'
import type { Transport } from './transport.ts'
import type { Informer, InformerOptions, ObjectChange } from './types.ts'
import { watchOnce } from './watch.ts'

/** Told what goes wrong. */
export type KubeLog = Pick<Scope, 'debug' | 'warn'>

export interface InformerTimes {
  readonly firstRetryMs: number
  readonly mostRetryMs: number
  /** How long a kind with known objects must be unknown to the server (404) before its objects count as deleted. */
  readonly missingKindMs: number
  /** The longest wait between looks for a kind that the server does not know. */
  readonly mostMissingRetryMs: number
}

const defaultTimes: InformerTimes = {
  firstRetryMs: 100,
  mostRetryMs: 3_000,
  missingKindMs: 30_000,
  mostMissingRetryMs: 15_000,
}

type Listener<T> = (changes: readonly ObjectChange<T>[]) => void

/** Starts at once. Managed fields are left out of the cached objects. */
export function createInformer<T extends KubeObject>(
  transport: Transport,
  resource: Resource,
  options: InformerOptions<T>,
  log: KubeLog,
  times: InformerTimes = defaultTimes,
): Informer<T> {
  const store = createInformerStore<T>(options.keep)
  const listeners = new Set<Listener<T>>()
  const stop = new AbortController()
  const synced = Promise.withResolvers<void>()
  synced.promise.catch(() => {})
  const what = { resource: resource.plural, group: resource.group }

  function deliver(changes: readonly ObjectChange<T>[]): void {
    if (changes.length === 0) return
    for (const listener of [...listeners]) call(listener, changes)
  }

  function call(listener: Listener<T>, changes: readonly ObjectChange<T>[]): void {
    try {
      listener(changes)
    } catch (error) {
      log.warn('a listener of the informer failed', { ...what, reason: textOf(error) })
    }
  }

  const backoff = createBackoff(times.firstRetryMs, times.mostRetryMs)
  const missingBackoff = createBackoff(times.firstRetryMs, times.mostMissingRetryMs)
  /** Where to go on watching; undefined: only a new list tells what is there. */
  let resourceVersion: string | undefined
  let missingSince: number | undefined
  const done = follow()

  async function follow(): Promise<void> {
    while (!stop.signal.aborted) {
      try {
        resourceVersion ??= await list()
        const startedAt = Date.now()
        resourceVersion = await watch(resourceVersion)
        // A server that ends every watch at once is not asked in a tight loop.
        if (Date.now() - startedAt < 1000) await pause(backoff)
        else backoff.reset()
      } catch (error) {
        if (stop.signal.aborted) break
        if (error instanceof WatchBroken) await recoverWatch(error)
        else await recoverList(error)
      }
    }
    synced.reject(new KubeError(`${resource.plural}: the informer was closed`, { code: 0, reason: 'Closed' }))
  }

  async function list(): Promise<string> {
    const listing = await listAll<T>(transport, resource, options, stop.signal, options.keep)
    missingSince = undefined
    missingBackoff.reset()
    deliver(store.replaceAll(listing.items))
    synced.resolve()
    return listing.resourceVersion
  }

  async function recoverWatch({ cause, resourceVersion: reached, sawEvents }: WatchBroken): Promise<void> {
    if (sawEvents) backoff.reset()
    // Refused: the version is too old or invalid, or the kind vanished.
    const isRefused = isKubeError(cause) && cause.code >= 400 && cause.code < 500 && cause.code !== 429
    resourceVersion = isRefused ? undefined : reached
    const isUsual = isKubeError(cause, 410) || isKubeError(cause, 0)
    log[isUsual ? 'debug' : 'warn']('a watch broke', { ...what, reason: textOf(cause) })
    await pause(backoff)
  }

  async function recoverList(error: unknown): Promise<void> {
    if (!isKubeError(error, 404)) {
      log.warn('a list failed', { ...what, reason: textOf(error) })
      await pause(backoff)
      return
    }
    missingSince ??= Date.now()
    if (store.size === 0 || Date.now() - missingSince >= times.missingKindMs) {
      deliver(store.replaceAll([]))
      synced.resolve()
    }
    log.debug('the API server does not know this kind', what)
    await pause(missingBackoff)
  }

  async function pause(backoff: { wait(signal: AbortSignal): Promise<void> }): Promise<void> {
    try {
      await backoff.wait(stop.signal)
    } catch {
      // Closed while waiting; the loop sees the signal.
    }
  }

  /** Follows one watch to its end and returns the version to go on from. */
  async function watch(from: string): Promise<string> {
    let resourceVersion = from
    let sawEvents = false
    const pathFor = (timeoutSeconds: number): string =>
      withQuery(collectionPath(resource, options.namespace), {
        ...selection(options),
        watch: true,
        allowWatchBookmarks: true,
        resourceVersion: from,
        timeoutSeconds,
      })
    try {
      await watchOnce<T>(
        transport,
        pathFor,
        (events) => {
          sawEvents = true
          resourceVersion = events.at(-1)?.object.metadata.resourceVersion ?? resourceVersion
          deliver(store.apply(events))
        },
        stop.signal,
      )
      return resourceVersion
    } catch (cause) {
      throw new WatchBroken(resourceVersion, sawEvents, cause)
    }
  }

  return {
    synced: synced.promise,
    get: store.get,
    list: store.list,
    subscribe(listener) {
      const known = store.list()
      listeners.add(listener)
      if (known.length > 0) {
        call(
          listener,
          known.map((object) => ({ kind: 'added', object })),
        )
      }
      return () => listeners.delete(listener)
    },
    async [Symbol.asyncDispose]() {
      stop.abort()
      listeners.clear()
      await done
    },
  }
}

class WatchBroken extends Error {
  readonly resourceVersion: string
  readonly sawEvents: boolean

  constructor(resourceVersion: string, sawEvents: boolean, cause: unknown) {
    super('the watch broke', { cause })
    this.resourceVersion = resourceVersion
    this.sawEvents = sawEvents
  }
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
