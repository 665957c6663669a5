// How one version of a kind is served: names, schema, defaults, validation. Data for the embedded API and for the command line.
import type { KubeObject, Resource } from './objects.ts'

/**
 * A structural schema in OpenAPI v3 terms with the `x-kubernetes-` extensions. There is no `$ref`: a recursive type refers
 * to its own object. Treat as immutable.
 */
export interface Schema {
  /** The OpenAPI definition this is, such as `io.k8s.api.core.v1.Container`; anonymous when absent. */
  readonly definition?: string
  readonly type?: 'object' | 'array' | 'string' | 'integer' | 'number' | 'boolean'
  readonly format?: string
  readonly description?: string
  readonly nullable?: boolean
  readonly default?: unknown
  readonly enum?: readonly unknown[]
  readonly properties?: Readonly<Record<string, Schema>>
  readonly additionalProperties?: Schema | boolean
  readonly items?: Schema
  readonly required?: readonly string[]
  readonly pattern?: string
  readonly minLength?: number
  readonly maxLength?: number
  readonly minItems?: number
  readonly maxItems?: number
  readonly uniqueItems?: boolean
  readonly minProperties?: number
  readonly maxProperties?: number
  readonly minimum?: number
  readonly maximum?: number
  readonly exclusiveMinimum?: boolean
  readonly exclusiveMaximum?: boolean
  readonly multipleOf?: number
  readonly allOf?: readonly Schema[]
  readonly anyOf?: readonly Schema[]
  readonly oneOf?: readonly Schema[]
  readonly not?: Schema
  readonly 'x-kubernetes-preserve-unknown-fields'?: boolean
  readonly 'x-kubernetes-embedded-resource'?: boolean
  readonly 'x-kubernetes-int-or-string'?: boolean
  readonly 'x-kubernetes-list-type'?: 'atomic' | 'set' | 'map'
  readonly 'x-kubernetes-list-map-keys'?: readonly string[]
  readonly 'x-kubernetes-map-type'?: 'atomic' | 'granular'
  /** Strategic merge patch of a list: the key of its items, and `merge`, `replace`, `retainKeys` or two of them with a comma. */
  readonly 'x-kubernetes-patch-merge-key'?: string
  readonly 'x-kubernetes-patch-strategy'?: string
  readonly 'x-kubernetes-validations'?: readonly {
    readonly rule: string
    readonly message?: string
    readonly messageExpression?: string
    readonly reason?: string
    readonly fieldPath?: string
  }[]
}

/** One reason why an object is refused, in the words of a Status cause. */
export interface Cause {
  readonly reason:
    | 'FieldValueRequired'
    | 'FieldValueInvalid'
    | 'FieldValueNotSupported'
    | 'FieldValueDuplicate'
    | 'FieldValueForbidden'
    | 'FieldValueNotFound'
    | 'FieldValueTypeInvalid'
    | 'FieldValueTooLong'
    | 'FieldValueTooMany'
    | 'UnexpectedServerResponse'
  /** JSON path without a leading dot: `spec.containers[0].image`. */
  readonly field: string
  /** Complete sentence as Kubernetes writes it: `Invalid value: "x": must be …`. */
  readonly message: string
}

/** A column of `kubectl get`, as a CRD declares it. */
export interface PrinterColumn {
  readonly name: string
  readonly type: 'integer' | 'number' | 'string' | 'boolean' | 'date'
  readonly format?: string
  readonly description?: string
  readonly priority?: number
  readonly jsonPath: string
}

export interface ScaleSubresource {
  readonly specReplicasPath: string
  readonly statusReplicasPath: string
  readonly labelSelectorPath?: string
}

export type Verb = 'create' | 'delete' | 'deletecollection' | 'get' | 'list' | 'patch' | 'update' | 'watch'

/** One served version of a kind. */
export interface KindDefinition extends Resource {
  readonly listKind: string
  readonly singular: string
  readonly shortNames?: readonly string[]
  readonly categories?: readonly string[]
  /** Verbs that are served; all of them when absent. `['create']` for reviews that are answered and not stored. */
  readonly verbs?: readonly Verb[]
  /**
   * Where objects are stored: versions (and groups, as with events) that name the same place are views of the same objects.
   * When absent: this very group and version.
   */
  readonly storage?: { readonly group: string; readonly version: string; readonly kind?: string }
  readonly subresources: {
    readonly status?: boolean
    readonly scale?: ScaleSubresource
    /** Further subresources by name, with the kind and verbs that discovery shows (`token`, `log`, `binding`, `approval`). */
    readonly others?: Readonly<
      Record<
        string,
        {
          readonly kind: string
          readonly group?: string
          readonly version?: string
          readonly verbs: readonly string[]
        }
      >
    >
  }
  /** Decides merge keys, what is set, list or atomic in server-side apply, and which fields are known. */
  readonly schema?: Schema
  /** Strategic merge patch is served (built-in kinds; never custom resources). */
  readonly strategicMergePatch?: boolean
  /** Replaces the built-in columns. */
  readonly columns?: readonly PrinterColumn[]
  /** A custom resource: from a CustomResourceDefinition. */
  readonly custom?: boolean
  readonly deprecationWarning?: string
  /** Removes unknown fields in place; returns their paths (`spec.foo`). */
  readonly prune?: (object: KubeObject) => string[]
  /** Sets defaults in place. */
  readonly applyDefaults?: (object: KubeObject) => void
  /** What is wrong with the object (`old`: the object that it replaces; metadata common to all kinds is checked by the caller). Empty when valid. */
  readonly validate?: (object: KubeObject, old?: KubeObject) => readonly Cause[]
  /** Spec changes raise metadata.generation. When absent: true if the kind has a status subresource or is a custom resource. */
  readonly hasGeneration?: boolean
  /** Fields besides metadata.name and metadata.namespace that field selectors may name, with the reader of each. */
  readonly selectableFields?: Readonly<Record<string, (object: KubeObject) => string>>
  /** To and from the stored form, when more than `apiVersion` differs. */
  readonly toStorage?: (object: KubeObject) => KubeObject
  readonly fromStorage?: (object: KubeObject) => KubeObject
}
