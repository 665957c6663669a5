// The probes of one run of a container, each on its own clock.
import { type ProbeOutcome, type ProbeTarget, runProbe } from './probe.ts'
import { countProbe, noProbes, type ProbeCount, probeTiming } from './probe-state.ts'
import type { Probe } from './types.ts'

export type ProbeKind = 'startup' | 'readiness' | 'liveness'

export interface ProberEvents {
  /** A probe's standing changed: `ready` or `started` of the container may be new. */
  changed(): void
  /** A start-up or liveness probe failed for good: the container is to be restarted. */
  failed(kind: ProbeKind, message: string): void
  /** One probe failed. */
  unsuccessful(kind: ProbeKind, message: string): void
}

export class Prober implements Disposable {
  readonly #target: ProbeTarget
  readonly #events: ProberEvents
  readonly #timers = new Set<NodeJS.Timeout>()
  readonly #probes: Readonly<Partial<Record<ProbeKind, Probe>>>
  readonly #counts = new Map<ProbeKind, ProbeCount>()
  #closed = false

  /** @param adopted the container was running, started and ready before this program began */
  constructor(target: ProbeTarget, events: ProberEvents, adopted: { started: boolean; ready: boolean } | undefined) {
    const { startupProbe, readinessProbe, livenessProbe } = target.container
    this.#target = target
    this.#events = events
    this.#probes = {
      ...(startupProbe && { startup: startupProbe }),
      ...(readinessProbe && { readiness: readinessProbe }),
      ...(livenessProbe && { liveness: livenessProbe }),
    }
    const good: ProbeCount = { result: true, lastOutcome: true, inARow: 1 }
    if (adopted?.started === true) this.#counts.set('startup', good)
    if (adopted?.ready === true) this.#counts.set('readiness', good)
    if (this.started) this.#startSteady(adopted !== undefined)
    else this.#schedule('startup', probeTiming(this.#probes.startup ?? {}).delayMs)
  }

  get started(): boolean {
    return this.#probes.startup === undefined || this.#counts.get('startup')?.result === true
  }

  get ready(): boolean {
    return this.started && (this.#probes.readiness === undefined || this.#counts.get('readiness')?.result === true)
  }

  #startSteady(atOnce: boolean): void {
    for (const kind of ['readiness', 'liveness'] as const) {
      const probe = this.#probes[kind]
      if (probe !== undefined) this.#schedule(kind, atOnce ? 0 : probeTiming(probe).delayMs)
    }
  }

  #schedule(kind: ProbeKind, delayMs: number): void {
    if (this.#closed) return
    const timer = setTimeout(() => {
      this.#timers.delete(timer)
      void this.#probe(kind)
    }, delayMs)
    this.#timers.add(timer)
  }

  async #probe(kind: ProbeKind): Promise<void> {
    const probe = this.#probes[kind]
    if (probe === undefined) return
    const { periodMs, timeoutMs } = probeTiming(probe)
    const outcome: ProbeOutcome = await runProbe(probe, this.#target, timeoutMs)
    if (this.#closed) return
    const before = this.#counts.get(kind) ?? noProbes
    const after = countProbe(before, outcome.success, probe)
    this.#counts.set(kind, after)
    if (!outcome.success) this.#events.unsuccessful(kind, outcome.message)
    if (after.result !== before.result) {
      if (kind === 'startup' && after.result === true) this.#startSteady(false)
      this.#events.changed()
    }
    if (kind !== 'readiness' && after.result === false) this.#events.failed(kind, outcome.message)
    else if (kind === 'startup' && after.result === true) return
    // A container that is not ready yet is asked more often, so that a program that starts fast is used soon.
    else this.#schedule(kind, kind === 'readiness' && after.result !== true ? Math.min(periodMs, 500) : periodMs)
  }

  [Symbol.dispose](): void {
    this.#closed = true
    for (const timer of this.#timers) clearTimeout(timer)
  }
}
