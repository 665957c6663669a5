// Takes decisions over the whole mesh at once, or, where it is known in parts, after asking for what they need.
import { decideOnDemand } from '../on-demand/index.ts'
import type { MeshView } from '../state/index.ts'
import type { PodContext } from './pod-context.ts'

/** `unanswered`: what becomes of a decision when the control plane does not answer, see `decideOnDemand`. */
export async function decide<T>(
  { services, options }: PodContext,
  take: (view: MeshView) => T,
  { unanswered, signal }: { readonly unanswered: 'fail' | 'decide'; readonly signal: AbortSignal },
): Promise<T> {
  const { onDemand, state } = services
  if (onDemand === undefined) return take(state)
  return decideOnDemand(state, take, { onDemand, timeoutMs: options.localWorkloadTimeoutMs, unanswered, signal })
}
