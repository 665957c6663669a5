// Asks the control plane for single addresses: one request for everybody who waits for a key, and a bound on each wait.
import type { MeshView } from '../state/index.ts'

export interface OnDemandOptions {
  readonly view: MeshView
  readonly subscribe: (key: string) => void
  readonly unsubscribe: (key: string) => void
  /** Subscriptions kept; beyond, those of keys that are nothing end, oldest first. */
  readonly mostKept?: number
}

export interface AskOptions {
  readonly timeoutMs: number
  readonly signal?: AbortSignal
}

export interface OnDemandAddresses {
  /**
   * Resolves once the control plane has said what the key is, or that it is nothing, and the mesh view shows it. Keys are
   * `<network>/<IP>`, `<namespace>/<hostname>` or a workload's uid. Rejects with an OnDemandError when there is no answer in time.
   */
  ask(key: string, options: AskOptions): Promise<void>
  /** To be told of each update once it is in force. */
  received(update: {
    readonly resources: readonly { readonly name: string; readonly aliases?: readonly string[] }[]
    readonly removed: readonly string[]
  }): void
}

export class OnDemandError extends Error {
  readonly code: 'NO_ANSWER' | 'ABORTED'

  constructor(code: OnDemandError['code'], message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'OnDemandError'
    this.code = code
  }
}

const defaultMostKept = 4096
const mostLookedAt = 64

export function createOnDemandAddresses(options: OnDemandOptions): OnDemandAddresses {
  const { view, subscribe, unsubscribe, mostKept = defaultMostKept } = options
  const waiting = new Map<string, Set<() => void>>()
  /** Subscribed and answered: what the view says of them is the truth, now and later. Oldest first. */
  const answered = new Set<string>()

  function answer(key: string): void {
    const waiters = waiting.get(key)
    if (waiters === undefined) return
    waiting.delete(key)
    answered.add(key)
    for (const wake of [...waiters]) wake()
  }

  function forgetOldest(): void {
    let looks = mostLookedAt
    for (const key of answered) {
      if (answered.size <= mostKept || looks === 0) return
      looks -= 1
      answered.delete(key)
      if (isKnown(view, key)) answered.add(key)
      else unsubscribe(key)
    }
  }

  return {
    ask(key, { timeoutMs, signal }) {
      if (answered.has(key) || isKnown(view, key)) return Promise.resolve()
      return new Promise((resolve, reject) => {
        if (signal?.aborted) return reject(new OnDemandError('ABORTED', `no longer asked for ${key}`))
        const waiters = waiting.get(key)
        const wake = (): void => finish(resolve)
        const finish = (settle: () => void): void => {
          clearTimeout(timer)
          signal?.removeEventListener('abort', abort)
          waiting.get(key)?.delete(wake)
          settle()
        }
        const abort = (): void =>
          finish(() => reject(new OnDemandError('ABORTED', `no longer asked for ${key}`, { cause: signal?.reason })))
        const expire = (): void =>
          finish(() =>
            reject(new OnDemandError('NO_ANSWER', `the control plane did not answer for ${key} in ${timeoutMs} ms`)),
          )
        const timer = setTimeout(expire, timeoutMs)
        signal?.addEventListener('abort', abort)
        if (waiters !== undefined) {
          waiters.add(wake)
          return
        }
        waiting.set(key, new Set([wake]))
        subscribe(key)
      })
    },
    received({ resources, removed }) {
      for (const { name, aliases = [] } of resources) {
        for (const key of [name, ...aliases]) answer(key)
      }
      for (const name of removed) answer(name)
      // A server need not name the key that was asked for: what has become known is an answer too.
      for (const key of [...waiting.keys()]) if (isKnown(view, key)) answer(key)
      forgetOldest()
    },
  }
}

function isKnown(view: MeshView, key: string): boolean {
  if (view.workload(key) !== undefined || view.service(key) !== undefined) return true
  const slash = key.indexOf('/')
  const [first, rest] = [key.slice(0, slash), key.slice(slash + 1)]
  return (
    view.workloadByHostname(first, rest) !== undefined ||
    view.workloadByAddress(first, rest) !== undefined ||
    view.serviceByVip(first, rest) !== undefined
  )
}
