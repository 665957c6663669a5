// Kinds of the Kubernetes, Istio and Gateway APIs: types, schemas, defaults, validation.

export type * from './kind.ts'
export * from './objects.ts'
export { resources } from './resources.ts'
