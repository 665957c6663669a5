// Server-side apply: the object that an applied configuration makes of the current one, with the new record of owners.
import type { KindDefinition, KubeObject } from '../../../api/index.ts'
import { ApiError } from '../errors.ts'
import { clone, isObject } from '../json.ts'
import { timestamp } from '../metadata.ts'
import {
  describePaths,
  difference,
  emptyTree,
  type FieldTree,
  intersection,
  isEmpty,
  treeToJson,
  union,
} from './field-tree.ts'
import { compareFields, fieldsOf } from './fields.ts'
import { type ManagerEntry, readManagers, setManagers, type Writer } from './managed-fields.ts'
import { mergeApplied, removeFields } from './merge.ts'

export interface Application extends Writer {
  readonly force: boolean
}

/** Neither argument is changed. Throws ApiError 409 with a cause for each field that another manager holds with another value. */
export function applyConfiguration(
  kind: KindDefinition,
  current: KubeObject | undefined,
  configuration: KubeObject,
  application: Application,
): KubeObject {
  const config = clone(configuration)
  delete config.metadata.managedFields
  stripOtherPart(kind, config, application.subresource)
  const wanted = fieldsOf(config, kind.schema)
  const managers = current === undefined ? [] : knownManagers(kind, current)
  const isOwn = (entry: ManagerEntry) =>
    entry.manager === application.manager &&
    entry.operation === 'Apply' &&
    entry.subresource === (application.subresource ?? '')
  const before = managers.find(isOwn)
  let others = managers.filter((entry) => !isOwn(entry))

  const merged = mergeInto(kind, current, config, before, wanted, others)
  const { changed } = compareFields(current, merged, kind.schema)
  const conflicts = others
    .map((entry) => ({ entry, fields: intersection(entry.fields, intersection(changed, wanted)) }))
    .filter(({ fields }) => !isEmpty(fields))
  if (conflicts.length > 0 && current !== undefined) {
    if (!application.force) throw conflictError(conflicts)
    others = others.map((entry) => {
      const lost = conflicts.find((conflict) => conflict.entry === entry)
      return lost === undefined ? entry : { ...entry, fields: difference(entry.fields, lost.fields) }
    })
  }
  const isSame =
    before !== undefined && JSON.stringify(treeToJson(before.fields)) === JSON.stringify(treeToJson(wanted))
  setManagers(merged, [
    ...others,
    {
      manager: application.manager,
      operation: 'Apply',
      apiVersion: application.apiVersion,
      subresource: application.subresource ?? '',
      time: isSame ? before.time : timestamp(application.now),
      fields: wanted,
    },
  ])
  return merged
}

/** A status is applied through its subresource only, and nothing else is applied there. */
function stripOtherPart(kind: KindDefinition, config: KubeObject, subresource: string | undefined): void {
  if (subresource === undefined) {
    if (kind.subresources.status === true) delete config.status
    return
  }
  if (subresource !== 'status') return
  for (const key of Object.keys(config)) {
    if (!['apiVersion', 'kind', 'metadata', 'status'].includes(key)) Reflect.deleteProperty(config, key)
  }
  delete config.metadata.labels
  delete config.metadata.annotations
  delete config.metadata.finalizers
  delete config.metadata.ownerReferences
}

/** An object without any record was written before records were kept: all its fields belong to that time. */
function knownManagers(kind: KindDefinition, current: KubeObject): ManagerEntry[] {
  const managers = readManagers(current.metadata.managedFields)
  if (managers.length > 0) return managers
  return [
    {
      manager: 'before-first-apply',
      operation: 'Update',
      apiVersion: current.apiVersion,
      subresource: '',
      time: current.metadata.creationTimestamp ?? '',
      fields: fieldsOf(current, kind.schema),
    },
  ]
}

function mergeInto(
  kind: KindDefinition,
  current: KubeObject | undefined,
  config: KubeObject,
  before: ManagerEntry | undefined,
  wanted: FieldTree,
  others: readonly ManagerEntry[],
): KubeObject {
  const merged = mergeApplied(current === undefined ? {} : clone(current), config, kind.schema)
  const kept = others.map((entry) => entry.fields).reduce(union, wanted)
  const gone = before === undefined ? emptyTree() : difference(before.fields, kept)
  const pruned = isEmpty(gone) ? merged : removeFields(merged, kind.schema, gone, kept)
  return asKubeObject(pruned, config)
}

function asKubeObject(value: unknown, config: KubeObject): KubeObject {
  const object = isObject(value) ? value : {}
  const metadata = isObject(object.metadata) ? object.metadata : {}
  return {
    ...object,
    apiVersion: config.apiVersion,
    kind: config.kind,
    metadata: { ...metadata, name: config.metadata.name },
  }
}

function conflictError(conflicts: readonly { entry: ManagerEntry; fields: FieldTree }[]): ApiError {
  const causes = conflicts.flatMap(({ entry, fields }) => {
    const through = entry.subresource === '' ? '' : ` with subresource "${entry.subresource}"`
    const message = `conflict with "${entry.manager}"${through} using ${entry.apiVersion}`
    return describePaths(fields).map((field) => ({ reason: 'FieldManagerConflict', message, field }))
  })
  const [first] = causes
  const text =
    causes.length === 1 && first !== undefined
      ? `${first.message}: ${first.field}`
      : `conflicts:\n${causes.map((cause) => `- ${cause.field}: ${cause.message}`).join('\n')}`
  const count = causes.length === 1 ? '1 conflict' : `${causes.length} conflicts`
  return new ApiError(409, 'Conflict', `Apply failed with ${count}: ${text}`, { causes })
}
