// Kinds of the Kubernetes, Istio and Gateway APIs: types, schemas, defaults, validation.
export * from './objects.ts'
export { resources } from './resources.ts'
