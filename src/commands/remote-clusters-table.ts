// The clusters that control planes read as a table.
import { columns } from './table.ts'

/** A cluster as the page of a control plane tells it. */
export interface ClusterOfPage {
  readonly id: string
  readonly secretName?: string
  readonly syncStatus: string
  /** Why its newest kubeconfig is not in use. */
  readonly problem?: string
}

export interface ClusterOfPod extends ClusterOfPage {
  /** The control plane pod that says so, and its revision. */
  readonly istiod: string
  readonly revision: string
}

/** In the order of the pods. A column more where something is wrong. */
export function remoteClustersTable(clusters: readonly ClusterOfPod[]): string {
  const withProblems = clusters.some(({ problem }) => problem !== undefined)
  const rows = clusters.map(({ id, secretName = '', syncStatus, istiod, revision, problem = '' }) => [
    ...[id, secretName, syncStatus, istiod, revision],
    ...(withProblems ? [problem] : []),
  ])
  return columns([['NAME', 'SECRET', 'STATUS', 'ISTIOD', 'REVISION', ...(withProblems ? ['PROBLEM'] : [])], ...rows], 5)
}
