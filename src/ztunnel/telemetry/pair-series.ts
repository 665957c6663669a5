// The counters of connections that have the same labels, found by what the labels are made of: 27 of them are built once, not
// several times a connection.
import type { CounterSeries } from '../../observability/index.ts'
import { spiffeId } from '../decisions/identity.ts'
import type { ConnectionFacts } from './facts.ts'
import { trafficLabels } from './labels.ts'
import type { ZtunnelMetrics } from './metrics.ts'

export type PairCounter = 'connectionsOpened' | 'connectionsClosed' | 'receivedBytes' | 'sentBytes'

/** Of connections without a failure. */
export interface PairSeries {
  /** The series is there, at zero, from the first call. */
  series(counter: PairCounter): CounterSeries
}

/** Stands for an end of which nothing is known. */
const nobody = {}

/** Workloads are immutable, so that the objects themselves name what they say; with the last of them the memory of them goes. */
export function createPairSeries(metrics: Pick<ZtunnelMetrics, PairCounter>): (facts: ConnectionFacts) => PairSeries {
  const bySource = new WeakMap<object, WeakMap<object, Map<string, PairSeries>>>()

  function create(facts: ConnectionFacts): PairSeries {
    const found: { [K in PairCounter]?: CounterSeries } = {}
    return {
      series(counter) {
        found[counter] ??= metrics[counter].with(trafficLabels(facts, '-'))
        return found[counter]
      },
    }
  }

  return (facts) => {
    const { reporter, mutualTls, source, destination, service, peerIdentity } = facts
    // What a peer says of itself is as various as it likes.
    if ((source === undefined && facts.sourceBaggage !== undefined) || facts.remoteDestination !== undefined) {
      return create(facts)
    }
    const byDestination = found(bySource, source ?? nobody, () => new WeakMap<object, Map<string, PairSeries>>())
    const others = found(byDestination, destination ?? nobody, () => new Map<string, PairSeries>())
    const identity = peerIdentity === undefined ? '' : spiffeId(peerIdentity)
    const named = service === undefined ? '' : `${service.namespace}/${service.name}/${service.hostname}`
    return found(others, `${reporter} ${mutualTls} ${identity} ${named}`, () => create(facts))
  }
}

interface Memory<K, V> {
  get(key: K): V | undefined
  set(key: K, value: V): unknown
}

function found<K, V>(memory: Memory<K, V>, key: K, make: () => V): V {
  const known = memory.get(key)
  if (known !== undefined) return known
  const made = make()
  memory.set(key, made)
  return made
}
