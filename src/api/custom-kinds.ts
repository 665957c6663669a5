// Custom kinds: a CustomResourceDefinition, and the kinds that it makes the API serve.

import { invalidValue } from './causes.ts'
import type { Cause, KindDefinition, PrinterColumn, ScaleSubresource, Schema } from './kind.ts'
import { dnsSubdomainFault } from './names.ts'
import type { Condition, KubeObject } from './objects.ts'
import { isObject, pruneUnknown, setDefaults, validateAgainst } from './schema-validation.ts'

export interface CrdNames {
  readonly plural: string
  readonly singular?: string
  readonly kind: string
  readonly listKind?: string
  readonly shortNames?: readonly string[]
  readonly categories?: readonly string[]
}

export interface CrdVersion {
  readonly name: string
  readonly served: boolean
  readonly storage: boolean
  readonly deprecated?: boolean
  readonly deprecationWarning?: string
  readonly schema?: { readonly openAPIV3Schema?: Schema }
  readonly subresources?: { readonly status?: object; readonly scale?: ScaleSubresource }
  readonly additionalPrinterColumns?: readonly PrinterColumn[]
  readonly selectableFields?: readonly { readonly jsonPath: string }[]
}

export interface CrdSpec {
  readonly group: string
  readonly names: CrdNames
  readonly scope: 'Namespaced' | 'Cluster'
  readonly versions: readonly CrdVersion[]
  readonly preserveUnknownFields?: boolean
  readonly conversion?: { readonly strategy: 'None' | 'Webhook'; readonly webhook?: unknown }
}

export interface CrdStatus {
  readonly conditions?: readonly Condition[]
  readonly acceptedNames?: CrdNames
  readonly storedVersions?: readonly string[]
}

export type CustomResourceDefinition = KubeObject<CrdSpec, CrdStatus>

/** The kinds that a definition makes the API serve: one for each served version. */
export function kindsOfCrd(crd: CustomResourceDefinition): readonly KindDefinition[] {
  const { spec } = crd
  if (spec === undefined) return []
  const stored = spec.versions.find((version) => version.storage)
  if (stored === undefined) return []
  return spec.versions.filter((version) => version.served).map((version) => definitionOf(spec, version, stored.name))
}

function definitionOf(spec: CrdSpec, version: CrdVersion, storedVersion: string): KindDefinition {
  const { names } = spec
  const declared = version.schema?.openAPIV3Schema
  const schema = declared === undefined ? undefined : withEnvelope(declared)
  const warning = `${spec.group}/${version.name} ${names.kind} is deprecated`
  return {
    group: spec.group,
    version: version.name,
    kind: names.kind,
    plural: names.plural,
    namespaced: spec.scope === 'Namespaced',
    listKind: names.listKind ?? `${names.kind}List`,
    singular: names.singular ?? names.kind.toLowerCase(),
    shortNames: names.shortNames ?? [],
    categories: names.categories ?? [],
    custom: true,
    storage: { group: spec.group, version: storedVersion },
    subresources: {
      ...(version.subresources?.status === undefined ? {} : { status: true }),
      ...(version.subresources?.scale === undefined ? {} : { scale: version.subresources.scale }),
    },
    columns: version.additionalPrinterColumns ?? [ageColumn],
    ...(version.deprecated === true ? { deprecationWarning: version.deprecationWarning ?? warning } : {}),
    ...(schema === undefined ? {} : { schema }),
    ...(schema === undefined || spec.preserveUnknownFields === true
      ? {}
      : { prune: (object: KubeObject) => pruneUnknown(schema, object) }),
    ...(schema === undefined ? {} : { applyDefaults: (object: KubeObject) => setDefaults(schema, object) }),
    validate: (object) => validate(schema, object),
    selectableFields: Object.fromEntries(
      (version.selectableFields ?? []).map(({ jsonPath }) => {
        const path = jsonPath.replace(/^\./, '')
        return [path, (object: KubeObject) => fieldText(object, path)]
      }),
    ),
  }
}

const ageColumn: PrinterColumn = { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' }

function validate(schema: Schema | undefined, object: KubeObject): readonly Cause[] {
  const fault = dnsSubdomainFault(object.metadata.name)
  return [
    ...(fault === undefined ? [] : [invalidValue('metadata.name', object.metadata.name, fault)]),
    ...(schema === undefined ? [] : validateAgainst(schema, object)),
  ]
}

/** The declared schema, with apiVersion, kind and metadata that every object has. */
function withEnvelope(schema: Schema): Schema {
  const text: Schema = { type: 'string' }
  const { metadata } = schema.properties ?? {}
  return {
    ...schema,
    type: 'object',
    properties: {
      ...schema.properties,
      apiVersion: text,
      kind: text,
      metadata: {
        ...metadata,
        ...metadataSchema,
        properties: { ...metadataSchema.properties, ...nameRules(metadata) },
      },
    },
  }
}

/** A definition may restrict metadata.name and metadata.generateName. */
function nameRules(metadata: Schema | undefined): Record<string, Schema> {
  return Object.fromEntries(
    ['name', 'generateName'].flatMap((name) => {
      const rule = metadata?.properties?.[name]
      return rule === undefined ? [] : [[name, rule]]
    }),
  )
}

const texts: Schema = { type: 'object', additionalProperties: { type: 'string' } }
const time: Schema = { type: 'string', format: 'date-time', nullable: true }

/** metadata as every custom resource has it; merge keys as for built-in kinds. */
const metadataSchema: Schema = {
  type: 'object',
  definition: 'io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta',
  properties: {
    name: { type: 'string' },
    generateName: { type: 'string' },
    namespace: { type: 'string' },
    selfLink: { type: 'string' },
    uid: { type: 'string' },
    resourceVersion: { type: 'string' },
    generation: { type: 'integer', format: 'int64' },
    creationTimestamp: time,
    deletionTimestamp: time,
    deletionGracePeriodSeconds: { type: 'integer', format: 'int64' },
    labels: { ...texts, nullable: true },
    annotations: { ...texts, nullable: true },
    finalizers: { type: 'array', nullable: true, items: { type: 'string' }, 'x-kubernetes-list-type': 'set' },
    ownerReferences: {
      type: 'array',
      nullable: true,
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['uid'],
      items: {
        type: 'object',
        required: ['apiVersion', 'kind', 'name', 'uid'],
        properties: {
          apiVersion: { type: 'string' },
          kind: { type: 'string' },
          name: { type: 'string' },
          uid: { type: 'string' },
          controller: { type: 'boolean' },
          blockOwnerDeletion: { type: 'boolean' },
        },
      },
    },
    managedFields: {
      type: 'array',
      nullable: true,
      'x-kubernetes-list-type': 'atomic',
      items: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
    },
  },
}

function fieldText(object: KubeObject, path: string): string {
  let value: unknown = object
  for (const name of path.split('.')) value = isObject(value) ? value[name] : undefined
  return value === undefined || value === null ? '' : String(value)
}
