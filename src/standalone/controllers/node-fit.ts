// Whether a pod may run on a node: readiness, selectors, affinity, taints, host ports.
import type * as core from 'kubernetes-types/core/v1.js'
import { podSelectsNode } from '../../api/index.ts'
import type { Node, Pod } from './objects.ts'

type Taint = core.Taint

/** Why not, in the words of the scheduler's messages; undefined when it may. */
export function nodeFits(node: Node, pod: Pod, others: readonly Pod[]): string | undefined {
  const { spec } = pod
  if (node.spec?.unschedulable === true && !toleratesAll([unschedulable], spec?.tolerations)) {
    return 'node(s) were unschedulable'
  }
  if (!isNodeReady(node)) return 'node(s) were not ready'
  if (!podSelectsNode(spec, node)) return "node(s) didn't match Pod's node affinity/selector"
  const hard = (node.spec?.taints ?? []).filter(({ effect }) => effect === 'NoSchedule' || effect === 'NoExecute')
  if (!toleratesAll(hard, spec?.tolerations)) return 'node(s) had untolerated taint(s)'
  const taken = new Set(others.flatMap(hostPorts))
  if (hostPorts(pod).some((port) => taken.has(port)))
    return "node(s) didn't have free ports for the requested pod ports"
  return undefined
}

export function refusalsText(nodes: number, refusals: ReadonlyMap<string, number>): string {
  if (nodes === 0) return 'no nodes available to schedule pods'
  const reasons = [...refusals].map(([why, count]) => `${count} ${why}`)
  return `0/${nodes} nodes are available: ${reasons.toSorted().join(', ')}.`
}

export function isNodeReady(node: Node): boolean {
  return node.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') === true
}

/** DaemonSet pods run on nodes that are not ready or closed, too. */
export function daemonFits(node: Node, spec: core.PodSpec | undefined): boolean {
  const hard = (node.spec?.taints ?? []).filter(({ effect }) => effect === 'NoSchedule' || effect === 'NoExecute')
  return podSelectsNode(spec, node) && toleratesAll(hard, [...(spec?.tolerations ?? []), ...daemonTolerations])
}

const unschedulable: Taint = { key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' }

export const daemonTolerations: readonly core.Toleration[] = [
  { key: 'node.kubernetes.io/not-ready', operator: 'Exists', effect: 'NoExecute' },
  { key: 'node.kubernetes.io/unreachable', operator: 'Exists', effect: 'NoExecute' },
  { key: 'node.kubernetes.io/not-ready', operator: 'Exists', effect: 'NoSchedule' },
  { key: 'node.kubernetes.io/unschedulable', operator: 'Exists', effect: 'NoSchedule' },
  { key: 'node.kubernetes.io/network-unavailable', operator: 'Exists', effect: 'NoSchedule' },
]

function toleratesAll(taints: readonly Taint[], tolerations: readonly core.Toleration[] = []): boolean {
  return taints.every((taint) => tolerations.some((toleration) => tolerates(toleration, taint)))
}

function tolerates(toleration: core.Toleration, taint: Taint): boolean {
  const { effect = '', key = '', operator = 'Equal', value = '' } = toleration
  if (effect !== '' && effect !== taint.effect) return false
  if (key === '') return operator === 'Exists'
  return key === taint.key && (operator === 'Exists' || value === (taint.value ?? ''))
}

function hostPorts(pod: Pod): string[] {
  return (pod.spec?.containers ?? []).flatMap((container) =>
    (container.ports ?? []).flatMap(({ hostPort, protocol = 'TCP' }) =>
      hostPort === undefined || hostPort === 0 ? [] : [`${hostPort}/${protocol}`],
    ),
  )
}
