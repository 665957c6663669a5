// The metrics of the certificate authority.
import type { Counter, CounterSeries, MetricsRegistry } from '../observability/index.ts'
import type { SigningErrorCode } from './signing/errors.ts'

export interface CaMetrics {
  readonly requests: CounterSeries
  readonly authenticationFailures: CounterSeries
  readonly csrErrors: CounterSeries
  readonly identityErrors: CounterSeries
  readonly signErrors: Counter<'error'>
  readonly issued: CounterSeries
  /** Not looked at, since too many were being served. */
  readonly turnedAway: CounterSeries
}

/** Ends of the first root and of the chain, as far as they are known, read when scraped. */
export interface ExpirySource {
  readonly root: () => Date | undefined
  readonly chain: () => Date | undefined
}

/** Registers the counters, and gauges of the time left when a source of the dates is given. */
export function createCaMetrics(
  registry: MetricsRegistry,
  expiry?: ExpirySource,
  now: () => Date = () => new Date(),
): CaMetrics {
  const counter = (name: string, help: string): CounterSeries =>
    registry.counter({ name: `citadel_server_${name}`, help }).with({})
  if (expiry !== undefined) registerExpiry(registry, expiry, now)
  return {
    requests: counter('csr_count', 'The number of CSRs received by the CA server.'),
    authenticationFailures: counter('authentication_failure_count', 'The number of authentication failures.'),
    csrErrors: counter('csr_parsing_err_count', 'The number of errors occurred when parsing the CSR.'),
    identityErrors: counter(
      'id_extraction_err_count',
      'The number of errors occurred when extracting the identities of a caller.',
    ),
    signErrors: registry.counter<'error'>({
      name: 'citadel_server_csr_sign_err_count',
      help: 'The number of errors occurred when signing the CSR.',
      labels: ['error'],
    }),
    turnedAway: counter('turned_away_count', 'The number of requests that were turned away unread.'),
    issued: counter('success_cert_issuance_count', 'The number of certificates issued.'),
  }
}

function registerExpiry(registry: MetricsRegistry, expiry: ExpirySource, now: () => Date): void {
  const gauge = (name: string, help: string) => registry.gauge({ name: `citadel_server_${name}`, help }).with({})
  const of = (what: 'root_cert' | 'cert_chain', read: () => Date | undefined) => {
    const timestamp = gauge(`${what}_expiry_timestamp`, 'The time of expiry, in seconds since the epoch.')
    const seconds = gauge(`${what}_expiry_seconds`, 'The time left until expiry, in seconds; negative when past.')
    return () => {
      const at = read()
      if (at === undefined) return
      const end = at.getTime() / 1000
      timestamp.set(end)
      seconds.set(end - now().getTime() / 1000)
    }
  }
  const updates = [of('root_cert', expiry.root), of('cert_chain', expiry.chain)]
  registry.beforeCollect(() => {
    for (const update of updates) update()
  })
}

export function countSigningError(metrics: CaMetrics, code: SigningErrorCode): void {
  if (code === 'CSR_ERROR') metrics.csrErrors.inc()
  metrics.signErrors.with({ error: code }).inc()
}
