// The result of a series of probes: thresholds, as the kubelet counts them. Pure.
import type { Probe } from './types.ts'

export interface ProbeCount {
  /** Undefined until a threshold is reached for the first time. */
  readonly result: boolean | undefined
  readonly lastOutcome: boolean | undefined
  readonly inARow: number
}

export const noProbes: ProbeCount = { result: undefined, lastOutcome: undefined, inARow: 0 }

export function countProbe(count: ProbeCount, outcome: boolean, probe: Probe): ProbeCount {
  const inARow = count.lastOutcome === outcome ? count.inARow + 1 : 1
  const threshold = outcome ? (probe.successThreshold ?? 1) : (probe.failureThreshold ?? 3)
  return { result: inARow >= threshold ? outcome : count.result, lastOutcome: outcome, inARow }
}

export function probeTiming(probe: Probe): { delayMs: number; periodMs: number; timeoutMs: number } {
  return {
    delayMs: (probe.initialDelaySeconds ?? 0) * 1000,
    periodMs: Math.max(1, probe.periodSeconds ?? 10) * 1000,
    timeoutMs: Math.max(1, probe.timeoutSeconds ?? 1) * 1000,
  }
}
