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

/** At most one of these fields is present: the shape of a protobuf oneof. */
export function atMostOneOf(...fields: string[]): Pick<Schema, 'oneOf'> {
  const present = fields.map((field): Schema => ({ required: [field] }))
  return { oneOf: [{ not: { anyOf: present } }, ...present] }
}

/** The schema with rules in CEL: pairs of an expression about `self` and what to say when it is false. */
export function withRules(schema: Schema, ...rules: readonly (readonly [rule: string, message: string])[]): Schema {
  const own = rules.map(([rule, message]) => ({ rule, message }))
  return { ...schema, 'x-kubernetes-validations': [...(schema['x-kubernetes-validations'] ?? []), ...own] }
}

/** The rules of a union: the field that belongs to the value of `type` is set, those of other values are not. */
export function unionRules(
  what: string,
  fields: Readonly<Record<string, string>>,
): readonly (readonly [string, string])[] {
  return Object.entries(fields).flatMap(([type, field]) => [
    [
      `self.type == '${type}' || !has(self.${field})`,
      `${what}.${field} must be nil if the ${what}.type is not ${type}`,
    ] as const,
    [
      `self.type != '${type}' || has(self.${field})`,
      `${what}.${field} must be specified for ${type} ${what}.type`,
    ] as const,
  ])
}
