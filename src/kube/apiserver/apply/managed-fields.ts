// metadata.managedFields: who has set which field, kept with every write.
import type { KindDefinition, KubeObject } from '../../../api/index.ts'
import { isObject, jsonEqual } from '../json.ts'
import { timestamp } from '../metadata.ts'
import { difference, emptyTree, type FieldTree, isEmpty, treeFromJson, treeToJson, union } from './field-tree.ts'
import { compareFields } from './fields.ts'

export interface ManagerEntry {
  readonly manager: string
  readonly operation: 'Apply' | 'Update'
  readonly apiVersion: string
  readonly subresource: string
  readonly time: string
  readonly fields: FieldTree
}

export interface Writer {
  readonly manager: string
  readonly apiVersion: string
  readonly subresource?: string
  readonly now: Date
}

const maxUpdateManagers = 10
const mergedManager = 'ancient-changes'

export function readManagers(managedFields: readonly unknown[] | undefined): ManagerEntry[] {
  const entries: ManagerEntry[] = []
  for (const item of managedFields ?? []) {
    if (!isObject(item) || typeof item.manager !== 'string') continue
    entries.push({
      manager: item.manager,
      operation: item.operation === 'Apply' ? 'Apply' : 'Update',
      apiVersion: typeof item.apiVersion === 'string' ? item.apiVersion : '',
      subresource: typeof item.subresource === 'string' ? item.subresource : '',
      time: typeof item.time === 'string' ? item.time : '',
      fields: treeFromJson(item.fieldsV1),
    })
  }
  return entries
}

export function writeManagers(entries: readonly ManagerEntry[]): Record<string, unknown>[] {
  return entries
    .filter((entry) => !isEmpty(entry.fields))
    .map((entry) => ({
      manager: entry.manager,
      operation: entry.operation,
      apiVersion: entry.apiVersion,
      time: entry.time,
      fieldsType: 'FieldsV1',
      fieldsV1: treeToJson(entry.fields),
      ...(entry.subresource === '' ? {} : { subresource: entry.subresource }),
    }))
}

/** Sets `next.metadata.managedFields` for a create (`old` absent) or an update by the writer. */
export function trackUpdate(kind: KindDefinition, old: KubeObject | undefined, next: KubeObject, writer: Writer): void {
  const isMain = writer.subresource === undefined && kind.subresources.status === true
  // Through the main resource nobody writes a status; the server may have set one.
  const { changed, removed } = isMain
    ? compareFields(withoutStatus(old), withoutStatus(next), kind.schema)
    : compareFields(old, next, kind.schema)
  const base = readManagers(baseOf(old, next))
  const touched = union(changed, removed)
  const isOwn = (entry: ManagerEntry) =>
    entry.manager === writer.manager &&
    entry.operation === 'Update' &&
    entry.apiVersion === writer.apiVersion &&
    entry.subresource === (writer.subresource ?? '')
  const before = base.find(isOwn)
  const others = isEmpty(touched)
    ? base.filter((entry) => !isOwn(entry))
    : base.filter((entry) => !isOwn(entry)).map((entry) => ({ ...entry, fields: difference(entry.fields, touched) }))
  const own: ManagerEntry = {
    manager: writer.manager,
    operation: 'Update',
    apiVersion: writer.apiVersion,
    subresource: writer.subresource ?? '',
    time: isEmpty(touched) && before !== undefined ? before.time : timestamp(writer.now),
    fields: difference(union(before?.fields ?? emptyTree(), changed), removed),
  }
  setManagers(next, foldOldest([...others, own]))
}

export function setManagers(object: KubeObject, entries: readonly ManagerEntry[]): void {
  const written = writeManagers(entries)
  if (written.length > 0) object.metadata.managedFields = written
  else delete object.metadata.managedFields
}

function withoutStatus<T extends KubeObject | undefined>(object: T): T {
  return object === undefined ? object : { ...object, status: undefined }
}

/** What the client sent counts when it is a list with entries; an explicitly emptied list resets the record. */
function baseOf(old: KubeObject | undefined, next: KubeObject): readonly unknown[] | undefined {
  if (old === undefined) return undefined
  const sent = next.metadata.managedFields
  if (!Array.isArray(sent)) return old.metadata.managedFields
  return sent
}

/** Many one-time writers would let the record grow without bound: the oldest are merged into one. */
function foldOldest(entries: readonly ManagerEntry[]): readonly ManagerEntry[] {
  const updates = entries.filter(
    (entry) => entry.operation === 'Update' && entry.subresource === '' && !isEmpty(entry.fields),
  )
  if (updates.length <= maxUpdateManagers) return entries
  const oldest = updates
    .toSorted((a, b) => a.time.localeCompare(b.time))
    .slice(0, updates.length - maxUpdateManagers + 1)
  const merged: ManagerEntry = {
    manager: mergedManager,
    operation: 'Update',
    apiVersion: oldest[0]?.apiVersion ?? '',
    subresource: '',
    time: oldest.at(-1)?.time ?? '',
    fields: oldest.map((entry) => entry.fields).reduce(union),
  }
  return [merged, ...entries.filter((entry) => !oldest.includes(entry))]
}

/** Equal but for times. */
export function sameManagedFields(a: readonly unknown[] | undefined, b: readonly unknown[] | undefined): boolean {
  const timeless = (items: readonly unknown[] | undefined) =>
    (items ?? []).map((item) => (isObject(item) ? { ...item, time: undefined } : item))
  return jsonEqual(timeless(a), timeless(b))
}
