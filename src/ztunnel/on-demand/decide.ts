// Decisions over a mesh of which only the parts asked for are known: decide, ask for what was missed, decide again.
import type { MeshView } from '../state/index.ts'
import type { OnDemandAddresses } from './addresses.ts'
import { recordMisses } from './recording-view.ts'

export interface DecideOptions {
  readonly onDemand: Pick<OnDemandAddresses, 'ask'>
  /** For all asking together. */
  readonly timeoutMs: number
  readonly signal?: AbortSignal
  /** Without an answer: `fail` rejects with its OnDemandError, `decide` takes what was missed as unknown. */
  readonly unanswered: 'fail' | 'decide'
}

/** A service, its waypoint, that one's service, a gateway: what follows from one answer is asked for in the next round. */
const mostRounds = 6

/** The decision, once nothing it looks for is left to ask for. */
export async function decideOnDemand<T>(
  view: MeshView,
  decide: (view: MeshView) => T,
  options: DecideOptions,
): Promise<T> {
  const { onDemand, unanswered, signal } = options
  const deadline = performance.now() + options.timeoutMs
  const asked = new Set<string>()
  for (let round = 0; round < mostRounds; round += 1) {
    const recording = recordMisses(view)
    const decision = decide(recording.view)
    const keys = [...recording.missed].filter((key) => !asked.has(key))
    if (keys.length === 0) return decision
    const timeoutMs = Math.max(0, deadline - performance.now())
    const asking = keys.map((key) => {
      asked.add(key)
      return onDemand.ask(key, { timeoutMs, ...(signal === undefined ? {} : { signal }) })
    })
    if (unanswered === 'fail') await Promise.all(asking)
    else await Promise.allSettled(asking)
  }
  return decide(view)
}
