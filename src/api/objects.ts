// The shape every Kubernetes object has, and how a kind of object is addressed in the API.

/** Metadata of an object as it travels in JSON (times are RFC 3339 text). */
export interface ObjectMeta {
  name: string
  namespace?: string
  generateName?: string
  uid?: string
  resourceVersion?: string
  generation?: number
  creationTimestamp?: string
  deletionTimestamp?: string
  deletionGracePeriodSeconds?: number
  labels?: Record<string, string>
  annotations?: Record<string, string>
  finalizers?: string[]
  ownerReferences?: OwnerReference[]
  managedFields?: unknown[]
}

export interface OwnerReference {
  apiVersion: string
  kind: string
  name: string
  uid: string
  controller?: boolean
  blockOwnerDeletion?: boolean
}

/** Any object of the API; kinds narrow `spec` and `status`. */
export interface KubeObject<Spec = unknown, Status = unknown> {
  apiVersion: string
  kind: string
  metadata: ObjectMeta
  spec?: Spec
  status?: Status
}

/** A kind of object and where the API serves it: `/apis/<group>/<version>[/namespaces/<ns>]/<plural>` (`/api/v1` for the empty group). */
export interface Resource {
  readonly group: string
  readonly version: string
  readonly kind: string
  readonly plural: string
  readonly namespaced: boolean
  /** Versions with the same schema, in which servers with other definitions serve it; the newest first. */
  readonly otherVersions?: readonly string[]
}

/** `group/version`, or `version` for the core group: the text of an object's `apiVersion`. */
export function apiVersionOf(resource: Resource): string {
  return resource.group === '' ? resource.version : `${resource.group}/${resource.version}`
}

export interface ObjectKey {
  readonly namespace?: string
  readonly name: string
}

/** A standard status condition. */
export interface Condition {
  type: string
  status: 'True' | 'False' | 'Unknown'
  reason?: string
  message?: string
  lastTransitionTime?: string
  observedGeneration?: number
}
