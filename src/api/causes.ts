// The reasons why an object is refused, in the words of Kubernetes.
import type { Cause } from './kind.ts'

const show = (value: unknown): string => JSON.stringify(value) ?? String(value)

export const required = (field: string, message = ''): Cause => ({
  reason: 'FieldValueRequired',
  field,
  message: message === '' ? 'Required value' : `Required value: ${message}`,
})

export const invalidValue = (field: string, value: unknown, message: string): Cause => ({
  reason: 'FieldValueInvalid',
  field,
  message: `Invalid value: ${show(value)}: ${message}`,
})

export const notSupported = (field: string, value: unknown, supported: readonly string[]): Cause => ({
  reason: 'FieldValueNotSupported',
  field,
  message: `Unsupported value: ${show(value)}: supported values: ${supported.map((text) => JSON.stringify(text)).join(', ')}`,
})

export const forbiddenField = (field: string, message: string): Cause => ({
  reason: 'FieldValueForbidden',
  field,
  message: `Forbidden: ${message}`,
})

export const duplicate = (field: string, value: unknown): Cause => ({
  reason: 'FieldValueDuplicate',
  field,
  message: `Duplicate value: ${show(value)}`,
})

export const notFoundField = (field: string, value: unknown): Cause => ({
  reason: 'FieldValueNotFound',
  field,
  message: `Not found: ${show(value)}`,
})

/** A field that may not change once it is set. */
export function immutable(field: string, value: unknown, old: unknown): Cause[] {
  return isSame(value, old) ? [] : [invalidValue(field, value, 'field is immutable')]
}

/** Deep equality of JSON values; fields in any order. */
export function isSame(a: unknown, b: unknown): boolean {
  if (a === b) return true
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false
  if (Array.isArray(a) !== Array.isArray(b)) return false
  const [left, right] = [a as Record<string, unknown>, b as Record<string, unknown>]
  const names = new Set([...Object.keys(left), ...Object.keys(right)])
  return [...names].every((name) => isSame(left[name], right[name]))
}
