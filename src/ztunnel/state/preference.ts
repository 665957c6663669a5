// Which of several workloads or services of one address or host name is meant.
import type { Service, Workload } from '../model.ts'
import { isVisible } from './view.ts'

/** The one a client gets of several services: its own namespace's, else the last canonical, else the first. */
export function preferredService(
  services: readonly Service[],
  clientNamespace: string | undefined,
): Service | undefined {
  let first: Service | undefined
  let canonical: Service | undefined
  for (const service of services) {
    if (!isVisible(service, clientNamespace)) continue
    if (service.namespace === clientNamespace) return service
    if (service.canonical) canonical = service
    first ??= service
  }
  return canonical ?? first
}

/** A pod first, then one that speaks HBONE, then the newest. */
export function preferredWorkload(found: readonly Workload[]): Workload | undefined {
  let best: Workload | undefined
  let bestRank = -1
  for (const workload of found) {
    const rank = (workload.uid.includes('//Pod/') ? 2 : 0) + (workload.protocol === 'HBONE' ? 1 : 0)
    if (rank < bestRank) continue
    best = workload
    bestRank = rank
  }
  return best
}
