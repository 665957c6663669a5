// Roots that others publish at an address, read again and again; while one cannot be read, what it said last counts.
import { setTimeout as sleep } from 'node:timers/promises'
import { fetchBundle } from '../ca/index.ts'
import type { Scope } from '../observability/index.ts'

export interface BundleEndpointsOptions {
  /** Roots of the servers of bundle documents, PEM; by default the public ones that Node.js comes with. */
  readonly endpointRoots?: string | undefined
  readonly refreshMs?: number | undefined
  readonly retryMs?: number | undefined
  readonly log: Scope
}

export interface BundleEndpoints extends Disposable {
  /** Follows these addresses from now on, and no others. */
  follow(urls: ReadonlySet<string>): void
}

const halfHourMs = 30 * 60_000

/** `read` is told what an address says each time it has been read. */
export function followBundleEndpoints(
  read: (url: string, roots: readonly string[]) => void,
  { endpointRoots, refreshMs = halfHourMs, retryMs = 60_000, log }: BundleEndpointsOptions,
): BundleEndpoints {
  const endpoints = new Map<string, AbortController>()

  function start(url: string): AbortController {
    const stop = new AbortController()
    void refresh(url, stop.signal).catch((error: unknown) => {
      if (!stop.signal.aborted) log.error('a trust bundle is no longer followed', { from: url, reason: String(error) })
    })
    return stop
  }

  async function refresh(url: string, signal: AbortSignal): Promise<void> {
    for (;;) {
      const isRead = await readOnce(url, signal)
      await sleep(isRead ? refreshMs : retryMs, undefined, { signal, ref: false })
    }
  }

  async function readOnce(url: string, signal: AbortSignal): Promise<boolean> {
    try {
      const roots = await fetchBundle(url, signal, endpointRoots)
      signal.throwIfAborted()
      read(url, roots)
      return true
    } catch (error) {
      signal.throwIfAborted()
      log.warn('a trust bundle could not be read; the last one stays', { from: url, reason: String(error) })
      return false
    }
  }

  return {
    follow(urls) {
      for (const [url, stop] of endpoints) {
        if (urls.has(url)) continue
        stop.abort()
        endpoints.delete(url)
      }
      for (const url of urls) if (!endpoints.has(url)) endpoints.set(url, start(url))
    },
    [Symbol.dispose]() {
      for (const stop of endpoints.values()) stop.abort()
    },
  }
}
