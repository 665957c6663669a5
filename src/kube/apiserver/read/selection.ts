// Which objects a list, a watch or a deletecollection means.
import type { KindDefinition, KubeObject } from '../../../api/index.ts'
import { badRequest } from '../errors.ts'
import {
  type FieldRequirement,
  matchesLabels,
  parseFieldSelector,
  parseLabelSelector,
  type Requirement,
} from '../selectors.ts'
import type { Entry } from '../store/entry.ts'

export interface Selection {
  /** Everything when absent. */
  readonly namespace?: string
  readonly isEverything: boolean
  matches(entry: Entry): boolean
}

export interface SelectionText {
  readonly namespace?: string
  /** A single object by its name. */
  readonly name?: string
  readonly labelSelector: string | null
  readonly fieldSelector: string | null
}

/** Throws ApiError 400 for selectors that can't be read or name fields that are not selectable. */
export function selectionOf(kind: KindDefinition, text: SelectionText): Selection {
  const labels = parseLabelSelector(text.labelSelector ?? '')
  const fields = parseFieldSelector(text.fieldSelector ?? '').map((requirement) => readable(kind, requirement))
  const { name, namespace } = text
  return {
    ...(namespace === undefined ? {} : { namespace }),
    isEverything: labels.length === 0 && fields.length === 0 && name === undefined,
    matches: (entry) =>
      (name === undefined || entry.name === name) && matchesFields(fields, entry) && matchesEntryLabels(labels, entry),
  }
}

interface ReadableField extends FieldRequirement {
  readonly read: (entry: Entry) => string
}

function readable(kind: KindDefinition, requirement: FieldRequirement): ReadableField {
  const { path } = requirement
  if (path === 'metadata.name') return { ...requirement, read: (entry) => entry.name }
  if (path === 'metadata.namespace') return { ...requirement, read: (entry) => entry.namespace }
  const selectable: ((object: KubeObject) => string) | undefined = kind.selectableFields?.[path]
  if (selectable === undefined) throw badRequest(`field label not supported: ${path}`)
  return { ...requirement, read: (entry) => entry.field(path, selectable) }
}

function matchesFields(fields: readonly ReadableField[], entry: Entry): boolean {
  return fields.every((field) => (field.read(entry) === field.value) === field.equal)
}

function matchesEntryLabels(labels: readonly Requirement[], entry: Entry): boolean {
  return labels.length === 0 || matchesLabels(labels, entry.labels)
}
