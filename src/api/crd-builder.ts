// Short builder of CustomResourceDefinitions for the kinds that this program brings along.
import type { CustomResourceDefinition } from './custom-kinds.ts'
import type { PrinterColumn, Schema } from './kind.ts'
import { object } from './schema.ts'

export interface CrdVersionPlan {
  readonly name: string
  readonly spec: Schema
  readonly status?: Schema
  readonly required?: readonly string[]
  readonly columns?: readonly PrinterColumn[]
  readonly deprecated?: string
  /** Kinds such as ReferenceGrant have no status. */
  readonly hasStatus?: boolean
}

export interface CrdPlan {
  readonly group: string
  readonly kind: string
  readonly plural: string
  readonly shortNames?: readonly string[]
  readonly categories?: readonly string[]
  readonly scope?: 'Namespaced' | 'Cluster'
  readonly labels?: Readonly<Record<string, string>>
  readonly annotations?: Readonly<Record<string, string>>
  readonly versions: readonly CrdVersionPlan[]
  /** The version that is stored. */
  readonly storage: string
}

export const ageColumn: PrinterColumn = { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' }

export function column(
  name: string,
  jsonPath: string,
  description?: string,
  type: PrinterColumn['type'] = 'string',
): PrinterColumn {
  return { name, type, jsonPath, ...(description === undefined ? {} : { description }) }
}

export function crd(plan: CrdPlan): CustomResourceDefinition {
  const { group, kind, plural, versions, storage } = plan
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: {
      name: `${plural}.${group}`,
      ...(plan.labels === undefined ? {} : { labels: { ...plan.labels } }),
      ...(plan.annotations === undefined ? {} : { annotations: { ...plan.annotations } }),
    },
    spec: {
      group,
      scope: plan.scope ?? 'Namespaced',
      names: {
        kind,
        plural,
        singular: kind.toLowerCase(),
        listKind: `${kind}List`,
        ...(plan.shortNames === undefined ? {} : { shortNames: plan.shortNames }),
        ...(plan.categories === undefined ? {} : { categories: plan.categories }),
      },
      conversion: { strategy: 'None' },
      versions: versions.map((version) => ({
        name: version.name,
        served: true,
        storage: version.name === storage,
        ...(version.deprecated === undefined ? {} : { deprecated: true, deprecationWarning: version.deprecated }),
        schema: { openAPIV3Schema: rootSchema(version) },
        ...(version.hasStatus === false ? {} : { subresources: { status: {} } }),
        ...(version.columns === undefined ? {} : { additionalPrinterColumns: version.columns }),
      })),
    },
  }
}

function rootSchema({ spec, status, required }: CrdVersionPlan): Schema {
  const schema = object({ spec, ...(status === undefined ? {} : { status }) })
  return required === undefined ? schema : { ...schema, required }
}
