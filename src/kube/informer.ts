// A cache of objects kept current by list and watch, through restarts of the server, broken connections and 410 Gone.
import { setTimeout as sleep } from 'node:timers/promises'
import type { KubeObject, Resource } from '../api/index.ts'
import type { Scope } from '../observability/index.ts'
import { type Backoff, createBackoff } from './backoff.ts'
import { isKubeError, KubeError, retryAfterMsOf } from './errors.ts'
import { createInformerStore } from './informer-store.ts'
import { listAll } from './list.ts'
import { collectionPath, selection, withQuery } from './paths.ts'
import { createServedVersions, inVersionOf, type ServedVersions } from './served-versions.ts'
import type { Transport } from './transport.ts'
import type { Informer, InformerOptions, ObjectChange } from './types.ts'
import { watchOnce } from './watch.ts'

/** Told what goes wrong. */
export type KubeLog = Pick<Scope, 'debug' | 'warn'>

export interface InformerTimes {
  readonly firstRetryMs: number
  readonly mostRetryMs: number
  /** The longest wait before a new list where the server lists but refuses to be watched: lists are dear. */
  readonly mostRelistMs: number
  /** How long a kind with known objects must be unknown to the server (404) before its objects count as deleted. */
  readonly missingKindMs: number
  /** The longest wait between looks for a kind that the server does not know. */
  readonly mostMissingRetryMs: number
  /** How long the same complaint is not repeated as a warning. */
  readonly sameComplaintMs: number
}

const defaultTimes: InformerTimes = {
  firstRetryMs: 100,
  mostRetryMs: 3_000,
  mostRelistMs: 60_000,
  missingKindMs: 30_000,
  mostMissingRetryMs: 15_000,
  sameComplaintMs: 60_000,
}

const hopelessWatches = 5

type Listener<T> = (changes: readonly ObjectChange<T>[]) => void

/** Starts at once. Managed fields are left out of the cached objects. `versions` is what is known of the server. */
export function createInformer<T extends KubeObject>(
  transport: Transport,
  resource: Resource,
  options: InformerOptions<T>,
  log: KubeLog,
  times: InformerTimes = defaultTimes,
  versions: ServedVersions = createServedVersions(),
): Informer<T> {
  const { keep: keepOf = (object: T) => object } = options
  /** Whatever version the server has, that of the resource is told. */
  const keep = (object: T): T => keepOf(inVersionOf(resource, object))
  const store = createInformerStore<T>(keep)
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
  const relistBackoff = createBackoff(times.firstRetryMs, times.mostRelistMs)
  const missingBackoff = createBackoff(times.firstRetryMs, times.mostMissingRetryMs)
  /** Where to go on watching; undefined: only a new list tells what is there. */
  let resourceVersion: string | undefined
  let missingSince: number | undefined
  let servedVersion = resource.version
  /** Watches in a row that the server answered by an error before their first event. */
  let fruitlessWatches = 0
  /** Watches in a row that found no server, or lost it before their first event. */
  let brokenConnections = 0
  let complaint: { readonly gist: string; readonly at: number } | undefined
  const done = follow()

  async function follow(): Promise<void> {
    while (!stop.signal.aborted) {
      try {
        resourceVersion ??= await list()
        const startedAt = Date.now()
        resourceVersion = await watch(resourceVersion)
        // A server that ends every watch at once is not asked in a tight loop.
        if (Date.now() - startedAt < 1000) await pause(backoff)
        else watchWorks()
      } catch (error) {
        if (stop.signal.aborted) break
        if (error instanceof WatchBroken) await recoverWatch(error)
        else await recoverList(error)
      }
    }
    synced.reject(new KubeError(`${resource.plural}: the informer was closed`, { code: 0, reason: 'Closed' }))
  }

  /** What goes wrong again and again is said once a minute. */
  function complain(level: 'debug' | 'warn', message: string, error: unknown): void {
    const gist = `${message} ${gistOf(error)}`
    const isSaid = complaint?.gist === gist && Date.now() - complaint.at < times.sameComplaintMs
    if (level === 'warn' && !isSaid) complaint = { gist, at: Date.now() }
    log[isSaid ? 'debug' : level](message, { ...what, reason: textOf(error) })
  }

  async function list(): Promise<string> {
    const listing = await versions.find(resource, (served) => listAll<T>(transport, served, options, stop.signal, keep))
    const { version } = versions.of(resource)
    if (version !== servedVersion) {
      log.warn('the API server serves this kind in another version', { ...what, version, wanted: resource.version })
      servedVersion = version
    }
    missingSince = undefined
    missingBackoff.reset()
    deliver(store.replaceAll(listing.items))
    synced.resolve()
    return listing.resourceVersion
  }

  async function recoverWatch({ cause, resourceVersion: reached, sawEvents }: WatchBroken): Promise<void> {
    const code = isKubeError(cause) ? cause.code : 0
    if (sawEvents) watchWorks()
    else if (code === 0) brokenConnections += 1
    else fruitlessWatches += 1
    // A server that has only just started knows nobody's rights yet: that says nothing of the version.
    const isPassing = code >= 500 || code === 401 || code === 403
    // The version is too old, unknown or invalid, or the kind vanished; and no version is worth more than a few tries.
    const isRefused = code >= 400 && !isPassing && code !== 429
    const isHopeless = isPassing && fruitlessWatches >= hopelessWatches
    const needsList = isRefused || isTooNew(cause) || isHopeless
    resourceVersion = needsList ? undefined : reached
    const isUsual = isKubeError(cause, 410) || (code === 0 && brokenConnections < hopelessWatches)
    complain(isUsual ? 'debug' : 'warn', 'a watch broke', cause)
    await pause(needsList ? relistBackoff : backoff, retryAfterMsOf(cause))
  }

  function watchWorks(): void {
    fruitlessWatches = 0
    brokenConnections = 0
    backoff.reset()
    relistBackoff.reset()
  }

  async function recoverList(error: unknown): Promise<void> {
    if (!isKubeError(error, 404)) {
      complain('warn', 'a list failed', error)
      await pause(backoff, retryAfterMsOf(error))
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

  /** Waits as long as the server asks for, if that is longer. */
  async function pause(backoff: Backoff, atLeastMs = 0): Promise<void> {
    try {
      await Promise.all([backoff.wait(stop.signal), sleep(atLeastMs, undefined, { signal: stop.signal })])
    } catch {
      // Closed while waiting; the loop sees the signal.
    }
  }

  /** Follows one watch to its end and returns the version to go on from. */
  async function watch(from: string): Promise<string> {
    let resourceVersion = from
    let sawEvents = false
    const pathFor = (timeoutSeconds: number): string =>
      withQuery(collectionPath(versions.of(resource), options.namespace), {
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

/** The server is behind the version, as after it was restored: it may be long before it gets there, with other objects. */
function isTooNew(cause: unknown): boolean {
  return isKubeError(cause, 504) && /too large resource version/i.test(cause.message)
}

/** Without the request, whose parameters are others each time. */
function gistOf(error: unknown): string {
  if (!isKubeError(error)) return textOf(error)
  const { code, status, cause, reason } = error
  const said = (status as { readonly message?: string } | undefined)?.message
  return `${code} ${said ?? (cause instanceof Error ? cause.message : reason)}`
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
