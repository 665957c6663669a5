// Who may see a ServiceEntry, and how far a Service reaches, by mesh config.
import { type LabelSelector, matchesLabelSelector } from '../../../api/index.ts'
import type { AmbientMeshConfig } from '../inputs.ts'

export type Visibility = 'PUBLIC' | 'NAMESPACE' | 'NONE'
type Labels = Readonly<Record<string, string>>

/** The first policy whose rules all hold for the namespace decides; then the default; then PUBLIC. */
export function visibilityOf(config: AmbientMeshConfig['serviceEntryVisibility'], namespaceLabels: Labels): Visibility {
  const policy = config?.policies?.find(({ matchingRules = [] }) =>
    matchingRules.every(
      ({ namespaceSelector }) =>
        namespaceSelector !== undefined && matchesLabelSelector(namespaceSelector, namespaceLabels),
    ),
  )
  const visibility = policy === undefined ? config?.defaultVisibility : policy.visibility
  return visibility === 'NAMESPACE' || visibility === 'NONE' ? visibility : 'PUBLIC'
}

/** GLOBAL where an entry with that scope selects both the namespace and the service. */
export function scopeOf(
  configs: AmbientMeshConfig['serviceScopeConfigs'],
  namespaceLabels: Labels,
  serviceLabels: Labels,
): 'LOCAL' | 'GLOBAL' {
  const selects = (selector: LabelSelector | undefined, labels: Labels): boolean =>
    selector === undefined || matchesLabelSelector(selector, labels)
  const global = configs?.some(
    ({ namespaceSelector, servicesSelector, scope }) =>
      scope === 'GLOBAL' && selects(namespaceSelector, namespaceLabels) && selects(servicesSelector, serviceLabels),
  )
  return global ? 'GLOBAL' : 'LOCAL'
}

/** Throws where a selector cannot be evaluated. */
export function validVisibility(config: AmbientMeshConfig['serviceEntryVisibility']) {
  for (const [at, { matchingRules = [] }] of (config?.policies ?? []).entries()) {
    for (const { namespaceSelector } of matchingRules) {
      for (const { key, operator } of namespaceSelector?.matchExpressions ?? []) {
        if (['In', 'NotIn', 'Exists', 'DoesNotExist'].includes(operator)) continue
        throw new InvalidSelectorError(`serviceEntryVisibility.policies[${at}]`, key, operator)
      }
    }
  }
  return config
}

/** Mesh config has a label selector that cannot be evaluated. */
export class InvalidSelectorError extends Error {
  readonly code = 'INVALID_SELECTOR'

  constructor(where: string, key: string, operator: string) {
    super(
      `mesh config ${where}: unknown operator "${operator}" for label ${key}; expected In, NotIn, Exists or DoesNotExist`,
    )
    this.name = 'InvalidSelectorError'
  }
}
