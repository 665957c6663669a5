// Checks values against structural schemas, removes unknown fields and sets defaults, in the words of Kubernetes.
import type { Cause, Schema } from './kind.ts'

export interface SchemaCheck {
  /** `null` is the same as an absent field: true for built-in kinds, false for custom resources. */
  readonly nullIsAbsent?: boolean
  /** Lists may hold two elements of one key: true for built-in kinds, where `env` may name a variable twice. */
  readonly duplicatesAllowed?: boolean
}

/** What is wrong with the value. `path` is the field that holds it (`spec`), empty for the whole object. */
export function validateAgainst(schema: Schema, value: unknown, path = '', check: SchemaCheck = {}): Cause[] {
  const causes: Cause[] = []
  visit(schema, value, path, check, causes)
  return causes
}

/** Removes fields that the schema does not know, in place; returns their paths. */
export function pruneUnknown(schema: Schema, value: unknown, path = ''): string[] {
  const removed: string[] = []
  prune(schema, value, path, removed)
  return removed
}

/** Fills in defaults, in place. */
export function setDefaults(schema: Schema, value: unknown): void {
  if (Array.isArray(value)) {
    if (schema.items !== undefined) for (const item of value) setDefaults(schema.items, item)
    return
  }
  if (!isObject(value)) return
  for (const [name, field] of Object.entries(schema.properties ?? {})) {
    const missing = value[name] === undefined || (value[name] === null && field.nullable !== true)
    if (missing && field.default !== undefined) value[name] = structuredClone(field.default)
    if (value[name] !== undefined) setDefaults(field, value[name])
  }
  if (typeof schema.additionalProperties === 'object') {
    for (const [name, item] of Object.entries(value)) {
      if (propertyOf(schema, name) === undefined) setDefaults(schema.additionalProperties, item)
    }
  }
}

/** The path of a field below another: `spec` + `a` is `spec.a`; names with dots are written in brackets. */
export function fieldPath(parent: string, name: string): string {
  return parent === '' ? name : `${parent}.${name}`
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Only what the schema itself names: `__proto__` and `constructor` are names like others. */
function propertyOf({ properties }: Schema, name: string): Schema | undefined {
  return properties !== undefined && Object.hasOwn(properties, name) ? properties[name] : undefined
}

function typeName(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'array'
  if (typeof value === 'number') return Number.isInteger(value) ? 'integer' : 'number'
  return typeof value
}

function hasType(schema: Schema, value: unknown): boolean {
  if (schema['x-kubernetes-int-or-string'] === true) return typeof value === 'string' || Number.isInteger(value)
  switch (schema.type) {
    case undefined:
      return true
    case 'object':
      return isObject(value)
    case 'array':
      return Array.isArray(value)
    case 'integer':
      return Number.isInteger(value)
    default:
      return typeof value === schema.type
  }
}

function show(value: unknown): string {
  return typeof value === 'string' ? JSON.stringify(value) : (JSON.stringify(value) ?? String(value))
}

function visit(schema: Schema, value: unknown, path: string, check: SchemaCheck, causes: Cause[]): void {
  if (value === null && (schema.nullable === true || check.nullIsAbsent === true || schema.type === undefined)) return
  if (value === undefined) return
  if (!hasType(schema, value)) {
    const wanted = schema['x-kubernetes-int-or-string'] === true ? 'integer or string' : schema.type
    const actual = typeName(value)
    const shown = actual === 'object' || actual === 'array' ? `"${actual}"` : show(value)
    causes.push({
      reason: 'FieldValueTypeInvalid',
      field: path,
      message: `Invalid value: ${shown}: ${path} in body must be of type ${wanted}: "${actual}"`,
    })
    return
  }
  checkValue(schema, value, path, causes)
  if (Array.isArray(value)) visitList(schema, value, path, check, causes)
  else if (isObject(value)) visitObject(schema, value, path, check, causes)
  visitCombinations(schema, value, path, check, causes)
}

function visitObject(
  schema: Schema,
  value: Record<string, unknown>,
  path: string,
  check: SchemaCheck,
  causes: Cause[],
): void {
  const count = Object.keys(value).length
  if (schema.minProperties !== undefined && count < schema.minProperties) {
    causes.push(invalidValue(path, value, `${path} in body should have at least ${schema.minProperties} properties`))
  }
  if (schema.maxProperties !== undefined && count > schema.maxProperties) {
    causes.push({
      reason: 'FieldValueTooMany',
      field: path,
      message: `Too many: ${count}: must have at most ${schema.maxProperties} items`,
    })
  }
  for (const name of schema.required ?? []) {
    if (value[name] === undefined || (value[name] === null && check.nullIsAbsent === true)) {
      causes.push({ reason: 'FieldValueRequired', field: fieldPath(path, name), message: 'Required value' })
    }
  }
  for (const [name, item] of Object.entries(value)) {
    const field = propertyOf(schema, name) ?? schema.additionalProperties
    if (typeof field === 'object') visit(field, item, fieldPath(path, name), check, causes)
  }
}

function visitList(schema: Schema, value: unknown[], path: string, check: SchemaCheck, causes: Cause[]): void {
  if (schema.minItems !== undefined && value.length < schema.minItems) {
    causes.push(invalidValue(path, value, `${path} in body should have at least ${schema.minItems} items`))
  }
  if (schema.maxItems !== undefined && value.length > schema.maxItems) {
    causes.push({
      reason: 'FieldValueTooMany',
      field: path,
      message: `Too many: ${value.length}: must have at most ${schema.maxItems} items`,
    })
  }
  const { items } = schema
  if (items !== undefined) value.forEach((item, index) => void visit(items, item, `${path}[${index}]`, check, causes))
  if (check.duplicatesAllowed !== true) visitDuplicates(schema, value, path, causes)
}

/** Two elements of a set or of a keyed list may not be the same. */
function visitDuplicates(schema: Schema, value: unknown[], path: string, causes: Cause[]): void {
  const listType = schema['x-kubernetes-list-type']
  const keys = schema['x-kubernetes-list-map-keys'] ?? []
  if (listType !== 'set' && listType !== 'map' && schema.uniqueItems !== true) return
  const seen = new Set<string>()
  value.forEach((item, index) => {
    const identity =
      listType === 'map' && isObject(item)
        ? Object.fromEntries(keys.map((key) => [key, item[key] ?? schema.items?.properties?.[key]?.default]))
        : item
    const text = JSON.stringify(identity)
    if (seen.has(text)) {
      causes.push({ reason: 'FieldValueDuplicate', field: `${path}[${index}]`, message: `Duplicate value: ${text}` })
    }
    seen.add(text)
  })
}

function invalidValue(field: string, value: unknown, message: string): Cause {
  return { reason: 'FieldValueInvalid', field, message: `Invalid value: ${show(value)}: ${message}` }
}

function checkValue(schema: Schema, value: unknown, path: string, causes: Cause[]): void {
  if (schema.enum !== undefined && !schema.enum.some((allowed) => JSON.stringify(allowed) === JSON.stringify(value))) {
    causes.push({
      reason: 'FieldValueNotSupported',
      field: path,
      message: `Unsupported value: ${show(value)}: supported values: ${schema.enum.map(show).join(', ')}`,
    })
  }
  if (typeof value === 'string') checkText(schema, value, path, causes)
  if (typeof value === 'number') checkNumber(schema, value, path, causes)
}

function checkText(schema: Schema, value: string, path: string, causes: Cause[]): void {
  const length = [...value].length
  if (schema.minLength !== undefined && length < schema.minLength) {
    causes.push(invalidValue(path, value, `${path} in body should be at least ${schema.minLength} chars long`))
  }
  if (schema.maxLength !== undefined && length > schema.maxLength) {
    causes.push({
      reason: 'FieldValueTooLong',
      field: path,
      message: `Too long: may not be more than ${schema.maxLength} bytes`,
    })
  }
  if (schema.pattern !== undefined && !patternMatches(schema.pattern, value)) {
    causes.push(invalidValue(path, value, `${path} in body should match '${schema.pattern}'`))
  }
  if (schema.format !== undefined && !formatMatches(schema.format, value)) {
    causes.push(invalidValue(path, value, `${path} in body must be of type ${schema.format}: ${show(value)}`))
  }
}

function checkNumber(schema: Schema, value: number, path: string, causes: Cause[]): void {
  const { minimum, maximum, multipleOf } = schema
  const below = minimum !== undefined && (schema.exclusiveMinimum === true ? value <= minimum : value < minimum)
  const above = maximum !== undefined && (schema.exclusiveMaximum === true ? value >= maximum : value > maximum)
  if (below) {
    const than = schema.exclusiveMinimum === true ? 'greater than' : 'greater than or equal to'
    causes.push(invalidValue(path, value, `${path} in body should be ${than} ${minimum}`))
  }
  if (above) {
    const than = schema.exclusiveMaximum === true ? 'less than' : 'less than or equal to'
    causes.push(invalidValue(path, value, `${path} in body should be ${than} ${maximum}`))
  }
  if (multipleOf !== undefined && !Number.isInteger(value / multipleOf)) {
    causes.push(invalidValue(path, value, `${path} in body should be a multiple of ${multipleOf}`))
  }
  if (schema.format === 'int32' && (value > 2147483647 || value < -2147483648)) {
    causes.push(invalidValue(path, value, `${path} in body must be of type int32: ${show(value)}`))
  }
}

/** A pattern that JavaScript cannot read (RE2 only) is not enforced: refusing everything would make the kind unusable. */
function patternMatches(pattern: string, value: string): boolean {
  const expression = expressionOf(pattern, 'u') ?? expressionOf(pattern, '')
  return expression === undefined || expression.test(value)
}

/** Undefined when the pattern is not valid with these flags: without `u`, escapes that mean nothing are allowed. */
function expressionOf(pattern: string, flags: string): RegExp | undefined {
  try {
    return new RegExp(pattern, flags)
  } catch {
    return undefined
  }
}

function formatMatches(format: string, value: string): boolean {
  switch (format) {
    case 'date-time':
    case 'datetime':
      return /^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(?:\.\d+)?(?:[Zz]|[+-]\d\d:\d\d)$/.test(value)
    case 'date':
      return /^\d{4}-\d\d-\d\d$/.test(value)
    case 'uuid':
      return /^[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}$/i.test(value)
    case 'byte':
      return /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(value.replaceAll(/\s/g, ''))
    default:
      return true
  }
}

function visitCombinations(schema: Schema, value: unknown, path: string, check: SchemaCheck, causes: Cause[]): void {
  const failures = (part: Schema): Cause[] => validateAgainst(part, value, path, check)
  for (const part of schema.allOf ?? []) causes.push(...failures(part))
  if (schema.anyOf !== undefined && !schema.anyOf.some((part) => failures(part).length === 0)) {
    causes.push(invalidValue(path, summary(value), `${path} in body must validate at least one schema (anyOf)`))
    causes.push(...(schema.anyOf[0] === undefined ? [] : failures(schema.anyOf[0])))
  }
  if (schema.oneOf !== undefined) {
    const matching = schema.oneOf.filter((part) => failures(part).length === 0).length
    if (matching !== 1) {
      causes.push(
        invalidValue(
          path,
          summary(value),
          `${path} in body must validate one and only one schema (oneOf). Found ${matching === 0 ? 'none valid' : `${matching} valid alternatives`}`,
        ),
      )
    }
  }
  if (schema.not !== undefined && failures(schema.not).length === 0) {
    causes.push(invalidValue(path, summary(value), `${path} in body must not validate the schema (not)`))
  }
}

function summary(value: unknown): unknown {
  const kind = typeName(value)
  return kind === 'object' || kind === 'array' ? kind : value
}

function prune(schema: Schema, value: unknown, path: string, removed: string[]): void {
  if (Array.isArray(value)) {
    const { items } = schema
    if (items !== undefined) value.forEach((item, index) => void prune(items, item, `${path}[${index}]`, removed))
    return
  }
  if (!isObject(value)) return
  const keepsUnknown =
    schema['x-kubernetes-preserve-unknown-fields'] === true ||
    schema.additionalProperties === true ||
    (schema.type === undefined && schema.properties === undefined)
  for (const name of Object.keys(value)) {
    const field = propertyOf(schema, name) ?? schema.additionalProperties
    if (typeof field === 'object') {
      prune(field, value[name], fieldPath(path, name), removed)
    } else if (!keepsUnknown && !(schema['x-kubernetes-embedded-resource'] === true && isEnvelope(name))) {
      removed.push(fieldPath(path, name))
      delete value[name]
    }
  }
}

const isEnvelope = (name: string): boolean => name === 'apiVersion' || name === 'kind' || name === 'metadata'
