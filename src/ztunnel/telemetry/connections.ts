// Reports connections: one access log line at the end, counters on the way.
import { type Fields, type Logging, quoted } from '../../observability/index.ts'
import { spiffeId } from '../decisions/identity.ts'
import { formatAddress } from '../state/address.ts'
import {
  type ConnectionFacts,
  destinationIdentity,
  destinationPeer,
  type ResponseFlag,
  sourceIdentity,
  sourcePeer,
} from './facts.ts'
import { trafficLabels } from './labels.ts'
import type { ZtunnelMetrics } from './metrics.ts'
import { createPairSeries } from './pair-series.ts'

export interface ConnectionFailure {
  readonly error: string
  readonly flag: ResponseFlag
}

/** A connection from the moment its destination is decided to its end. */
export interface OpenConnection {
  readonly facts: ConnectionFacts
  /** Bytes client → server. */
  received(bytes: number): void
  /** Bytes server → client. */
  sent(bytes: number): void
  /** What the far end of a double HBONE says; labels and log name it from now on. */
  setRemoteDestination(remote: NonNullable<ConnectionFacts['remoteDestination']>): void
  /** Ends the record; only the first call counts. Without a failure the connection went well. */
  close(failure?: ConnectionFailure): void
}

export interface ConnectionReports {
  open(facts: ConnectionFacts): OpenConnection
  /** A connection refused before its destination was decided. */
  deny(
    facts: Pick<ConnectionFacts, 'reporter' | 'src' | 'dst'> & Partial<ConnectionFacts>,
    failure: ConnectionFailure,
  ): void
}

export interface ConnectionReportsOptions {
  readonly metrics: ZtunnelMetrics
  readonly logging: Logging
  /** Milliseconds, monotonic. */
  readonly now?: () => number
}

export function createConnectionReports(options: ConnectionReportsOptions): ConnectionReports {
  const { metrics, logging, now = () => performance.now() } = options
  const log = logging.scope('access', 'One line a connection')
  const pairSeries = createPairSeries(metrics)
  return {
    open(facts) {
      const connection = openConnection(facts)
      if (log.writes('debug')) log.debug('connection opened', connectionFields(facts))
      return connection
    },
    deny(facts, failure) {
      metrics.connectionsFailed.with(trafficLabels({ mutualTls: false, ...facts }, failure.flag)).inc()
      log.warn('connection failed', {
        'src.addr': formatAddress(facts.src),
        'dst.addr': formatAddress(facts.dst),
        direction: quoted(direction(facts)),
        error: quoted(failure.error),
      })
    },
  }

  function openConnection(initial: ConnectionFacts): OpenConnection {
    const startedAt = now()
    let facts = initial
    let received = 0
    let sent = 0
    let closed = false
    let counters = pairSeries(facts)
    counters.series('connectionsOpened').inc()

    function close(failure?: ConnectionFailure): void {
      if (closed) return
      closed = true
      if (failure === undefined) counters.series('connectionsClosed').inc()
      else {
        const labels = trafficLabels(facts, failure.flag)
        metrics.connectionsClosed.with(labels).inc()
        metrics.connectionsFailed.with(labels).inc()
      }
      const level = failure === undefined ? 'info' : 'error'
      if (!log.writes(level)) return
      const outbound = facts.reporter === 'source'
      log.log(level, 'connection complete', {
        ...connectionFields(facts),
        bytes_sent: outbound ? received : sent,
        bytes_recv: outbound ? sent : received,
        duration: quoted(`${Math.round(now() - startedAt)}ms`),
        error: failure === undefined ? undefined : quoted(failure.error),
      })
    }

    return {
      get facts() {
        return facts
      },
      received(bytes) {
        received += bytes
        counters.series('receivedBytes').inc(bytes)
      },
      sent(bytes) {
        sent += bytes
        counters.series('sentBytes').inc(bytes)
      },
      setRemoteDestination(remote) {
        facts = { ...facts, remoteDestination: remote }
        counters = pairSeries(facts)
      },
      close,
    }
  }
}

/** The fields of a connection in the order of the log line. */
function connectionFields(facts: ConnectionFacts): Fields {
  const source = sourcePeer(facts)
  const destination = destinationPeer(facts)
  const from = sourceIdentity(facts)
  const to = facts.mutualTls ? destinationIdentity(facts) : undefined
  const text = (value: string | undefined) => (value === undefined || value === '' ? undefined : quoted(value))
  return {
    'src.addr': formatAddress(facts.src),
    'src.workload': text(source?.podName),
    'src.namespace': text(source?.namespace),
    'src.identity': from === undefined ? undefined : quoted(spiffeId(from)),
    'src.cluster': text(source?.clusterId),
    'dst.addr': formatAddress(facts.dst),
    'dst.hbone_addr': facts.hboneAuthority,
    'dst.service': text(facts.service?.hostname),
    'dst.workload': text(destination?.podName),
    'dst.namespace': text(destination?.namespace),
    'dst.identity': to === undefined ? undefined : quoted(spiffeId(to)),
    'dst.cluster': text(destination?.clusterId),
    direction: quoted(direction(facts)),
  }
}

const direction = (facts: Pick<ConnectionFacts, 'reporter'>): string =>
  facts.reporter === 'source' ? 'outbound' : 'inbound'
