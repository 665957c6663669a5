// Tables for `kubectl get`: columns and rows of a kind's objects.
import type { KindDefinition, KubeObject } from '../../../api/index.ts'
import { type Column, nameColumn } from './column.ts'
import { builtinColumns, defaultColumns } from './columns.ts'
import { age } from './duration.ts'
import { readJsonPath } from './json-path.ts'

export type IncludedObject = 'Object' | 'Metadata' | 'None'

export interface TableContext {
  readonly kind: KindDefinition
  readonly wanted: { readonly metaVersion: string }
  readonly include: IncludedObject
  readonly now: Date
}

export function tableOf(context: TableContext, objects: readonly KubeObject[], metadata: object): unknown {
  const { kind, now } = context
  const apiVersion = `meta.k8s.io/${context.wanted.metaVersion}`
  const columns = columnsOf(kind)
  return {
    kind: 'Table',
    apiVersion,
    metadata,
    columnDefinitions: columns.map(({ name, type, format, description, priority }) => ({
      name,
      type,
      format: format ?? '',
      description: description ?? '',
      priority: priority ?? 0,
    })),
    rows: objects.map((object) => ({
      cells: columns.map((column) => column.value(object, now)),
      object: includedObject(context.include, object, apiVersion),
    })),
  }
}

function includedObject(include: IncludedObject, object: KubeObject, apiVersion: string): unknown {
  switch (include) {
    case 'Object':
      return object
    case 'None':
      return null
    case 'Metadata':
      return { kind: 'PartialObjectMetadata', apiVersion, metadata: object.metadata }
  }
}

function columnsOf(kind: KindDefinition): readonly Column[] {
  if (kind.columns !== undefined) {
    const own = kind.columns.map(
      (column): Column => ({
        ...column,
        type: column.type === 'date' ? 'string' : column.type,
        value: (object, now) => printedCell(column, object, now),
      }),
    )
    return [nameColumn, ...own]
  }
  return builtinColumns.get(`${kind.group}/${kind.kind}`) ?? defaultColumns
}

function printedCell(
  column: { readonly type: string; readonly jsonPath: string },
  object: KubeObject,
  now: Date,
): unknown {
  const values = readJsonPath(object, column.jsonPath)
  if (values.length === 0) return column.type === 'date' ? '<unknown>' : column.type === 'string' ? '' : null
  const [first] = values
  switch (column.type) {
    case 'integer':
    case 'number':
      return typeof first === 'number' ? first : null
    case 'boolean':
      return typeof first === 'boolean' ? first : null
    case 'date':
      return typeof first === 'string' ? age(first, now) : '<invalid>'
    default:
      return values.map((value) => (typeof value === 'string' ? value : JSON.stringify(value))).join(',')
  }
}
