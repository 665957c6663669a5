// What the API server needs to know of a kind to serve it.
import type { Resource } from './objects.ts'

export interface KindInfo extends Resource {
  readonly singular: string
  readonly shortNames: readonly string[]
  readonly categories: readonly string[]
  /** Names of the subresources below an object: `status`, `scale`, `log`, … */
  readonly subresources: readonly string[]
  /** `virtual` kinds are answered and never stored (TokenReview, SubjectAccessReview). */
  readonly storage: 'stored' | 'virtual'
  /** Field selectors besides metadata.name and metadata.namespace. */
  readonly selectableFields: readonly string[]
}

export interface BuiltinKind extends KindInfo {
  /** The class of `@kubernetes/client-node` that describes the kind. */
  readonly model: string
}
