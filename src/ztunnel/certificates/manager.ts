// The node proxy's certificates: one per identity, fetched once for all who wait, renewed in time, kept while they are valid.
import { CertificateError, type WorkloadCertificate } from '../../ca/client/index.ts'
import { type Clock, systemClock } from './clock.ts'
import { createRequestQueue, type Priority } from './request-queue.ts'
import { renewalDelayMs, retryDelayMs } from './schedule.ts'

export interface CertificateManagerOptions {
  /** Asks the CA. Rejecting is a failure that is tried again; the signal ends a request nobody needs any more. */
  readonly requestCertificate: (identity: string, signal: AbortSignal) => Promise<WorkloadCertificate>
  /** Requests in flight at most. */
  readonly concurrency?: number
  readonly clock?: Clock
  /** In [0, 1), for the spread of renewals and retries. */
  readonly random?: () => number
  /** Told of each certificate that arrives, before those who wait for it; without one when the identity is forgotten. */
  readonly onCertificate?: (identity: string, certificate: WorkloadCertificate | undefined) => void
  /** Told of each failed request. */
  readonly onFailure?: (identity: string, error: CertificateError) => void
}

export type CertificateState = 'Initializing' | 'Available' | 'Unavailable'

export interface CertificateEntry {
  readonly identity: string
  readonly state: CertificateState
  /** The last failure, where the state is Unavailable. */
  readonly error?: CertificateError
  readonly certificate?: WorkloadCertificate
}

export interface CertificateManager extends AsyncDisposable {
  /**
   * The certificate of an identity, fetched when there is none. Rejects with a CertificateError: at once with the last failure while
   * the identity is unavailable, with FORGOTTEN when it is forgotten meanwhile.
   */
  get(identity: string, priority: Priority): Promise<WorkloadCertificate>
  /** The certificate in hand, if it has not expired. */
  current(identity: string): WorkloadCertificate | undefined
  /** Fetches ahead of need. */
  prefetch(identity: string): void
  /** Drops the certificate and whatever is under way for it. */
  forget(identity: string): void
  /** Every identity known, sorted. */
  list(): readonly CertificateEntry[]
  /** Ends all requests and timers; what waits and all later requests reject with CLOSED. */
  close(): void
}

interface Entry {
  readonly identity: string
  certificate: WorkloadCertificate | undefined
  error: CertificateError | undefined
  failures: number
  waiting: PromiseWithResolvers<WorkloadCertificate> | undefined
  request: AbortController | undefined
  timer: unknown
}

export function createCertificateManager(options: CertificateManagerOptions): CertificateManager {
  const { requestCertificate, concurrency = 8, clock = systemClock, random = Math.random } = options
  const { onCertificate, onFailure } = options
  const entries = new Map<string, Entry>()
  const queue = createRequestQueue<Entry>()
  let inFlight = 0
  let isClosed = false

  const validCertificate = (entry: Entry): WorkloadCertificate | undefined =>
    entry.certificate !== undefined && clock.now() < entry.certificate.notAfter.getTime()
      ? entry.certificate
      : undefined

  function entryOf(identity: string): Entry {
    const known = entries.get(identity)
    if (known !== undefined) return known
    const entry: Entry = {
      identity,
      certificate: undefined,
      error: undefined,
      failures: 0,
      waiting: undefined,
      request: undefined,
      timer: undefined,
    }
    entries.set(identity, entry)
    return entry
  }

  function enqueue(entry: Entry, priority: Priority): void {
    if (entry.request !== undefined) return
    stopTimer(entry)
    queue.add(entry, priority)
    startRequests()
  }

  function startRequests(): void {
    while (inFlight < concurrency) {
      const entry = queue.take()
      if (entry === undefined) return
      start(entry)
    }
  }

  function start(entry: Entry): void {
    const request = new AbortController()
    entry.request = request
    inFlight += 1
    // The place is free again when the request ends, or at once when it is no longer needed, however long the CA call hangs.
    let isDone = false
    const finish = (conclude: () => void): void => {
      if (isDone) return
      isDone = true
      inFlight -= 1
      if (entry.request === request) entry.request = undefined
      conclude()
      startRequests()
    }
    request.signal.addEventListener('abort', () => finish(() => {}), { once: true })
    const answer = (async () => requestCertificate(entry.identity, request.signal))()
    answer.then(
      (certificate) => finish(() => succeed(entry, certificate)),
      (error: unknown) => finish(() => fail(entry, error)),
    )
  }

  function succeed(entry: Entry, certificate: WorkloadCertificate): void {
    if (clock.now() >= certificate.notAfter.getTime()) {
      fail(entry, new CertificateError('CA_ANSWER', `the certificate for ${entry.identity} has expired already`))
      return
    }
    entry.certificate = certificate
    entry.error = undefined
    entry.failures = 0
    onCertificate?.(entry.identity, certificate)
    entry.waiting?.resolve(certificate)
    entry.waiting = undefined
    startTimer(entry, renewalDelayMs(certificate, clock.now(), random()), 'Background')
  }

  function fail(entry: Entry, cause: unknown): void {
    const error =
      cause instanceof CertificateError
        ? cause
        : new CertificateError('CA_CALL', cause instanceof Error ? cause.message : String(cause), { cause })
    entry.error = error
    entry.failures += 1
    const certificate = validCertificate(entry)
    if (certificate === undefined) entry.waiting?.reject(error)
    else entry.waiting?.resolve(certificate)
    entry.waiting = undefined
    const delay = retryDelayMs(entry.failures, random())
    if (certificate === undefined) startTimer(entry, delay, 'Warmup')
    else startTimer(entry, Math.min(delay, certificate.notAfter.getTime() - clock.now()), 'Background')
    onFailure?.(entry.identity, error)
  }

  function startTimer(entry: Entry, delayMs: number, priority: Priority): void {
    entry.timer = clock.setTimeout(() => {
      entry.timer = undefined
      enqueue(entry, priority)
    }, delayMs)
  }

  function stopTimer(entry: Entry): void {
    if (entry.timer !== undefined) clock.clearTimeout(entry.timer)
    entry.timer = undefined
  }

  function drop(entry: Entry, reason: CertificateError): void {
    entries.delete(entry.identity)
    queue.remove(entry)
    stopTimer(entry)
    if (entry.certificate !== undefined) onCertificate?.(entry.identity, undefined)
    entry.waiting?.reject(reason)
    entry.waiting = undefined
    entry.request?.abort(reason)
  }

  async function get(identity: string, priority: Priority): Promise<WorkloadCertificate> {
    if (isClosed) throw new CertificateError('CLOSED', 'the proxy is shutting down')
    const entry = entryOf(identity)
    const certificate = validCertificate(entry)
    if (certificate !== undefined) return certificate
    if (entry.error !== undefined) throw entry.error
    entry.waiting ??= Promise.withResolvers()
    const { promise } = entry.waiting
    enqueue(entry, priority)
    return promise
  }

  function close(): void {
    isClosed = true
    for (const entry of [...entries.values()]) {
      drop(entry, new CertificateError('CLOSED', 'the proxy is shutting down'))
    }
  }

  function describe(entry: Entry): CertificateEntry {
    const { identity, error } = entry
    const certificate = validCertificate(entry)
    if (certificate !== undefined) return { identity, state: 'Available', certificate }
    return error === undefined ? { identity, state: 'Initializing' } : { identity, state: 'Unavailable', error }
  }

  return {
    get,
    current(identity) {
      const entry = entries.get(identity)
      return entry === undefined ? undefined : validCertificate(entry)
    },
    prefetch(identity) {
      // A failure stays in the entry's state and is tried again; there is nobody here to tell.
      get(identity, 'Warmup').catch(() => {})
    },
    forget(identity) {
      const entry = entries.get(identity)
      if (entry !== undefined) drop(entry, new CertificateError('FORGOTTEN', 'the identity is no longer needed'))
    },
    list: () => [...entries.values()].map(describe).sort((a, b) => (a.identity < b.identity ? -1 : 1)),
    close,
    async [Symbol.asyncDispose]() {
      close()
    },
  }
}
