// One column of a table, and the columns that most kinds have.
import type { KubeObject } from '../../../api/index.ts'
import { age } from './duration.ts'

export interface Column {
  readonly name: string
  readonly type: 'integer' | 'number' | 'string' | 'boolean'
  readonly format?: string
  readonly description?: string
  /** Above 0: only with `-o wide`. */
  readonly priority?: number
  readonly value: (object: KubeObject, now: Date) => unknown
}

/** Reads into an object without a care for its shape; the printer shows what is there. */
// biome-ignore lint/suspicious/noExplicitAny: printers read fields of many kinds, and absent ones are undefined
export type Loose = any

export function column(
  name: string,
  value: (object: Loose, now: Date) => unknown,
  priority = 0,
  type: Column['type'] = 'string',
): Column {
  return { name, type, priority, value }
}

export const nameColumn: Column = {
  name: 'Name',
  type: 'string',
  format: 'name',
  description: 'Name must be unique within a namespace.',
  value: (object) => object.metadata.name,
}

export const ageColumn: Column = {
  name: 'Age',
  type: 'string',
  description: 'The time since the object was created.',
  value: (object, now) => age(object.metadata.creationTimestamp, now),
}
