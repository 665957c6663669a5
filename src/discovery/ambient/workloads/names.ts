// The names of a workload in telemetry: workload, canonical service, canonical revision.
import type { ObjectMeta, WorkloadEntry } from '../../../api/index.ts'

type Labels = Readonly<Record<string, string>>

export function canonicalName(labels: Labels, workloadName: string): string {
  return labels['service.istio.io/canonical-name'] ?? labels['app.kubernetes.io/name'] ?? labels.app ?? workloadName
}

export function canonicalRevision(labels: Labels): string {
  return (
    labels['service.istio.io/canonical-revision'] ?? labels['app.kubernetes.io/version'] ?? labels.version ?? 'latest'
  )
}

/** The name of what made the pod: Deployment, CronJob, … rather than its generated parts. */
export function podWorkloadName({ name, generateName, labels = {}, ownerReferences = [] }: ObjectMeta): string {
  const labelled = labels['service.istio.io/workload-name']
  if (labelled !== undefined) return labelled
  const owner = ownerReferences.find((reference) => reference.controller === true)
  if (generateName === undefined || generateName === '' || owner === undefined) return name
  switch (owner.kind) {
    case 'ReplicaSet': {
      const hash = labels['pod-template-hash'] ?? labels['rollouts-pod-template-hash']
      const suffix = `-${hash}`
      return hash !== undefined && owner.name.endsWith(suffix) ? owner.name.slice(0, -suffix.length) : owner.name
    }
    case 'ReplicationController':
      return labels.deploymentconfig ?? owner.name
    case 'Job':
      return owner.name.replace(/(.)-\d{8,10}$/, '$1')
    default:
      return owner.name
  }
}

export function workloadEntryName({ metadata }: WorkloadEntry, labels: Labels): string {
  return (
    metadata.annotations?.['istio.io/autoRegistrationGroup'] ??
    labels['service.istio.io/workload-name'] ??
    metadata.name
  )
}
