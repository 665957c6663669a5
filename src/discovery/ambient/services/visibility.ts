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
