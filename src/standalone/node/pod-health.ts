// Has a running container probed: what its probes find becomes events of the pod, passes of its worker, and restarts.
import { execAndWait } from './exec.ts'
import type { PodContainer } from './pod-container.ts'
import { Prober } from './prober.ts'

export interface HealthListener {
  record(type: 'Normal' | 'Warning', reason: string, message: string): void
  changed(): void
  /** A probe has failed for good: the container is to be stopped. */
  stop(): void
}

/** Gives the container its prober, unless it does not run; tells whether it did. */
export function watchHealth(
  container: PodContainer,
  ip: string,
  adopted: { started: boolean; ready: boolean } | undefined,
  listener: HealthListener,
): boolean {
  const process = container.running
  if (process === undefined) return false
  const target = {
    ip,
    container: container.planned.container,
    exec: (argv: readonly string[], timeoutMs: number) => execAndWait(process, argv, timeoutMs),
  }
  container.setProber(
    new Prober(
      target,
      {
        changed: () => listener.changed(),
        unsuccessful: (kind, message) =>
          listener.record('Warning', 'Unhealthy', `${capital(kind)} probe failed: ${message}`),
        failed: (kind) => {
          listener.record('Normal', 'Killing', `Container ${container.name} failed ${kind} probe, will be restarted`)
          listener.stop()
        },
      },
      adopted,
    ),
  )
  return true
}

function capital(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1)
}
