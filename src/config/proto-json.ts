// Between JSON as people write it into objects and as protobuf defines it: durations like 1m30s, and whole numbers of 64 bits.
import { type DescField, type DescMessage, type JsonValue, ScalarType } from '@bufbuild/protobuf'
import { parseGoDuration } from '../util/index.ts'

type Convert = (type: string, value: JsonValue) => JsonValue

/** What is written, so that protobuf can read it. What is no duration stays as it is. */
export function toProtoJson(schema: DescMessage, written: JsonValue): JsonValue {
  return walk(schema, written, (type, value) =>
    type === 'google.protobuf.Duration' && typeof value === 'string' ? durationInSeconds(value) : value,
  )
}

/** What protobuf gives, as the schemas of objects have it. */
export function fromProtoJson(schema: DescMessage, json: JsonValue): JsonValue {
  return walk(schema, json, (type, value) => (type === '64 bits' && typeof value === 'string' ? Number(value) : value))
}

function walk(schema: DescMessage, value: JsonValue, convert: Convert): JsonValue {
  if (!isRecord(value) || schema.typeName.startsWith('google.protobuf.')) return convert(schema.typeName, value)
  return Object.fromEntries(
    Object.entries(value).map(([name, part]) => {
      const field = schema.fields.find((one) => one.jsonName === name || one.name === name)
      return [name, field === undefined ? part : walkField(field, part, convert)]
    }),
  )
}

function walkField(field: DescField, value: JsonValue, convert: Convert): JsonValue {
  const one = (part: JsonValue): JsonValue => {
    if (field.message !== undefined) return walk(field.message, part, convert)
    return convert(field.scalar === ScalarType.UINT64 || field.scalar === ScalarType.INT64 ? '64 bits' : '', part)
  }
  if (field.fieldKind === 'list') return Array.isArray(value) ? value.map(one) : value
  if (field.fieldKind !== 'map') return one(value)
  if (!isRecord(value)) return value
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, one(part)]))
}

function durationInSeconds(text: string): string {
  const ms = parseGoDuration(text)
  if (ms === undefined) return text
  const seconds = (ms / 1000).toFixed(9).replace(/\.?0+$/, '')
  return `${seconds}s`
}

function isRecord(value: JsonValue): value is { [key: string]: JsonValue } {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
