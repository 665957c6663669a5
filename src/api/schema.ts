// Short builders to write the schema of a kind.
import type { Schema } from './kind.ts'

type Options = Omit<Schema, 'type' | 'properties' | 'items'>

export const string = (options: Options = {}): Schema => ({ type: 'string', ...options })
export const integer = (options: Options = {}): Schema => ({ type: 'integer', ...options })
export const number = (options: Options = {}): Schema => ({ type: 'number', format: 'double', ...options })
export const boolean = (options: Options = {}): Schema => ({ type: 'boolean', ...options })

/** One of the given texts. */
export const oneOfTexts = (...values: string[]): Schema => ({ type: 'string', enum: values })

/** An object with these fields and no others. A name that ends in `!` is required. */
export function object(fields: Readonly<Record<string, Schema>>, options: Options = {}): Schema {
  const required = Object.keys(fields).filter((name) => name.endsWith('!'))
  const properties = Object.fromEntries(
    Object.entries(fields).map(([name, schema]) => [name.endsWith('!') ? name.slice(0, -1) : name, schema]),
  )
  return {
    type: 'object',
    properties,
    ...(required.length > 0 ? { required: required.map((name) => name.slice(0, -1)) } : {}),
    ...options,
  }
}

export const list = (items: Schema, options: Options = {}): Schema => ({ type: 'array', items, ...options })

/** A list whose elements are told apart by these fields. */
export const keyedList = (keys: readonly string[], items: Schema, options: Options = {}): Schema =>
  list(items, { 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': keys, ...options })

export const map = (values: Schema, options: Options = {}): Schema => ({
  type: 'object',
  additionalProperties: values,
  ...options,
})

/** Any object. */
export const anyObject = (options: Options = {}): Schema => ({
  type: 'object',
  'x-kubernetes-preserve-unknown-fields': true,
  ...options,
})

/** Any JSON value. */
export const anyValue: Schema = { 'x-kubernetes-preserve-unknown-fields': true }

export const intOrString: Schema = { 'x-kubernetes-int-or-string': true }

/** At most one of these fields is present: the shape of a protobuf oneof. */
export function atMostOneOf(...fields: string[]): Pick<Schema, 'oneOf'> {
  const present = fields.map((field): Schema => ({ required: [field] }))
  return { oneOf: [{ not: { anyOf: present } }, ...present] }
}
