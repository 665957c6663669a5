// How many endpoints are there in name only: what whoever runs the mesh looks at when a service has fewer members than it should.
import type { Collection } from '../../collections/index.ts'
import { workload } from '../../proto/index.ts'
import type { InCluster, Pod } from './inputs.ts'
import type { WorkloadInfo } from './model.ts'
import type { PodReference } from './workloads/endpoint-slice.ts'

export interface EndpointCounts {
  /** Endpoints of slices whose pod is not known, or is another one of that name by now. */
  readonly withoutPod: number
  /** Workloads that are served as unhealthy. */
  readonly notReady: number
}

/** Looks at all there is: for a scrape, not for each change. */
export function countEndpoints(
  references: Collection<PodReference>,
  pods: Collection<InCluster<Pod>>,
  workloads: Collection<WorkloadInfo>,
): EndpointCounts {
  let withoutPod = 0
  for (const [, { pod, uid }] of references.entries()) {
    const known = pods.get(pod)
    if (known === undefined || known.object.metadata.uid !== uid) withoutPod += 1
  }
  let notReady = 0
  for (const [, { message }] of workloads.entries()) {
    if (message.status === workload.WorkloadStatus.UNHEALTHY) notReady += 1
  }
  return { withoutPod, notReady }
}
