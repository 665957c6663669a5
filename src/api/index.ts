// Kinds of the Kubernetes, Istio and Gateway APIs: types, schemas, defaults, validation.

export type * from './kind.ts'
export * from './istio.ts'
export * from './objects.ts'
export { resources } from './resources.ts'
export { type LabelSelector, type LabelSelectorRequirement, matchesLabelSelector } from './label-selector.ts'
