// Kinds of the Kubernetes, Istio and Gateway APIs: types, schemas, defaults, validation.

export * from './catalog.ts'
export { validateCrd } from './crd-validation.ts'
export * from './custom-kinds.ts'
export * from './istio.ts'
export { istioResources } from './istio-resources.ts'
export type * from './kind.ts'
export { type LabelSelector, type LabelSelectorRequirement, matchesLabelSelector } from './label-selector.ts'
export * from './names.ts'
export { podSelectsNode } from './node-selection.ts'
export * from './objects.ts'
export { resources } from './resources.ts'
export {
  clusterRole,
  controlPlaneRights,
  nodeAgentRights,
  nodeProxyRights,
  remoteReaderRights,
  serviceAccount,
} from './rights.ts'
export { pruneUnknown, type SchemaCheck, setDefaults, validateAgainst } from './schema-validation.ts'
