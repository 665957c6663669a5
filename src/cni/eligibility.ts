// Which pods belong to the ambient mesh. Plugin and agent ask the same question and must get the same answer.
import type { Pod } from 'kubernetes-types/core/v1.js'
import { type LabelSelector, matchesLabelSelector } from '../api/index.ts'

/** A pod is eligible when both selectors are met; an absent selector is met by everything. */
export interface EnablementSelector {
  readonly podSelector?: LabelSelector
  readonly namespaceSelector?: LabelSelector
}

const mode = 'istio.io/dataplane-mode'

export const defaultEnablementSelectors: readonly EnablementSelector[] = [
  { podSelector: { matchLabels: { [mode]: 'ambient' } } },
  {
    podSelector: { matchExpressions: [{ key: mode, operator: 'NotIn', values: ['none'] }] },
    namespaceSelector: { matchLabels: { [mode]: 'ambient' } },
  },
]

export const sidecarStatusAnnotation = 'sidecar.istio.io/status'
export const redirectionAnnotation = 'ambient.istio.io/redirection'

type Labels = Readonly<Record<string, string>>

const operators: readonly unknown[] = ['In', 'NotIn', 'Exists', 'DoesNotExist']

/** What keeps a value from being an enablement selector; undefined for one that is. A selector that selects nothing by mistake would leave pods outside the mesh. */
export function enablementSelectorProblem(value: unknown): string | undefined {
  if (!isRecord(value)) return 'expected {podSelector, namespaceSelector}'
  const unknown = Object.keys(value).find((key) => key !== 'podSelector' && key !== 'namespaceSelector')
  if (unknown !== undefined) return `${unknown}: expected podSelector or namespaceSelector`
  for (const name of ['podSelector', 'namespaceSelector']) {
    const problem = labelSelectorProblem(value[name] ?? {})
    if (problem !== undefined) return `${name}${problem}`
  }
  return undefined
}

function labelSelectorProblem(selector: unknown): string | undefined {
  if (!isRecord(selector)) return ': expected {matchLabels, matchExpressions}'
  const { matchLabels, matchExpressions, ...others } = selector
  const [unknown] = Object.keys(others)
  if (unknown !== undefined) return `.${unknown}: expected matchLabels or matchExpressions`
  const isText = (one: unknown): boolean => typeof one === 'string'
  if (!isRecord(matchLabels ?? {}) || !Object.values(matchLabels ?? {}).every(isText))
    return '.matchLabels: expected texts by name'
  const expressions: unknown = matchExpressions ?? []
  if (!Array.isArray(expressions)) return '.matchExpressions: expected a list'
  const at = expressions.findIndex((one: unknown) => {
    if (!isRecord(one) || !isText(one.key) || !operators.includes(one.operator)) return true
    const values: unknown = one.values ?? []
    return !Array.isArray(values) || !values.every(isText)
  })
  return at < 0 ? undefined : `.matchExpressions[${at}]: expected {key, operator: ${operators.join(' | ')}, values}`
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Whether a pod's traffic is to be captured. */
export function isEligible(pod: Pod, namespaceLabels: Labels, selectors: readonly EnablementSelector[]): boolean {
  if (pod.spec?.hostNetwork === true) return false
  if (pod.metadata?.annotations?.[sidecarStatusAnnotation] !== undefined) return false
  return selectors.some(
    ({ podSelector, namespaceSelector }) =>
      matchesLabelSelector(podSelector ?? {}, pod.metadata?.labels) &&
      matchesLabelSelector(namespaceSelector ?? {}, namespaceLabels),
  )
}

/** Whether a namespace's labels alone put pods into the mesh. Selectors that do not look at the namespace do not count. */
export function isAmbientNamespace(labels: Labels, selectors: readonly EnablementSelector[]): boolean {
  return selectors.some(({ namespaceSelector }) => {
    const looks =
      Object.keys(namespaceSelector?.matchLabels ?? {}).length + (namespaceSelector?.matchExpressions?.length ?? 0)
    return namespaceSelector !== undefined && looks > 0 && matchesLabelSelector(namespaceSelector, labels)
  })
}

/** The node proxy's own pods are never captured. */
export function isNodeProxy(pod: Pod, systemNamespace: string): boolean {
  return pod.metadata?.namespace === systemNamespace && pod.metadata?.labels?.app === 'ztunnel'
}
