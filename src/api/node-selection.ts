// Which nodes a pod asks for, by node selector and required node affinity.
import type { NodeSelectorRequirement, NodeSelectorTerm, PodSpec } from 'kubernetes-types/core/v1.js'
import { meetsRequirement } from './label-selector.ts'

/** What is looked at in a node. */
export interface SelectableNode {
  readonly metadata?: { readonly name?: string; readonly labels?: Readonly<Record<string, string>> }
}

/** Whether the node is one of those that the pod asks for. Taints and readiness are other questions. */
export function podSelectsNode(spec: PodSpec | undefined, node: SelectableNode): boolean {
  const labels = node.metadata?.labels ?? {}
  const isSelected = Object.entries(spec?.nodeSelector ?? {}).every(([key, value]) => labels[key] === value)
  const required = spec?.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution
  return isSelected && (required === undefined || required.nodeSelectorTerms.some((term) => termMatches(term, node)))
}

function termMatches({ matchExpressions = [], matchFields = [] }: NodeSelectorTerm, node: SelectableNode): boolean {
  if (matchExpressions.length + matchFields.length === 0) return false
  const { name, labels = {} } = node.metadata ?? {}
  return (
    matchExpressions.every((requirement) => meets(requirement, labels[requirement.key])) &&
    matchFields.every((requirement) => requirement.key === 'metadata.name' && meets(requirement, name))
  )
}

function meets({ operator, values = [] }: NodeSelectorRequirement, value: string | undefined): boolean {
  switch (operator) {
    case 'Gt':
      return value !== undefined && Number(value) > Number(values[0])
    case 'Lt':
      return value !== undefined && Number(value) < Number(values[0])
    default:
      return meetsRequirement(operator, values, value)
  }
}
