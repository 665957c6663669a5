// Reads request bodies in Kubernetes' protobuf form, which typed Go clients such as kubectl send for built-in kinds.
import { BinaryReader } from '@bufbuild/protobuf/wire'
import { badRequest } from '../errors.ts'
import type { JsonObject } from '../json.ts'
import { coreFields } from './core-fields.ts'
import { otherFields } from './other-fields.ts'

export const protobufType = 'application/vnd.kubernetes.protobuf'

interface Field {
  readonly name: string
  readonly type: string
  readonly how: 'pointer' | 'plain' | 'inline' | 'list' | 'map'
}

type Messages = ReadonlyMap<string, ReadonlyMap<number, Field>>

const magic = Buffer.from('k8s\0')
let parsed: Messages | undefined

/** The object as JSON would have it. Throws ApiError 400 when the bytes can't be read or the kind is not known. */
export function decodeProtobuf(bytes: Uint8Array): JsonObject {
  if (!magic.equals(bytes.subarray(0, magic.length))) {
    throw badRequest('the body of the request does not begin as the protobuf form of a Kubernetes object does')
  }
  try {
    return decodeEnvelope(bytes.subarray(magic.length))
  } catch (error) {
    if (error instanceof RangeError || error instanceof TypeError)
      throw badRequest(`the body of the request is not valid protobuf: ${error.message}`)
    throw error
  }
}

/** runtime.Unknown: the type of the object, and its bytes. */
function decodeEnvelope(bytes: Uint8Array): JsonObject {
  let type: { apiVersion: string; kind: string } = { apiVersion: '', kind: '' }
  let raw: Uint8Array = new Uint8Array()
  read(bytes, (field, reader) => {
    if (field === 1) type = decodeTypeMeta(reader.bytes())
    else if (field === 2) raw = reader.bytes()
    else return false
    return true
  })
  const message = messageOf(type.apiVersion, type.kind)
  if (message === undefined) {
    throw badRequest(`${type.kind} of ${type.apiVersion} is not known in protobuf form; send it as JSON`)
  }
  return { ...type, ...decodeMessage(message, raw) }
}

function decodeTypeMeta(bytes: Uint8Array): { apiVersion: string; kind: string } {
  const type = { apiVersion: '', kind: '' }
  read(bytes, (field, reader) => {
    if (field === 1) type.apiVersion = reader.string()
    else if (field === 2) type.kind = reader.string()
    else return false
    return true
  })
  return type
}

function messageOf(apiVersion: string, kind: string): string | undefined {
  // Options travel in the version of the resource that they are for.
  if (kind === 'DeleteOptions') return 'meta.DeleteOptions'
  const [first = '', version] = apiVersion.split('/')
  const group = version === undefined ? 'core' : first.split('.')[0]
  const room = first === 'rbac.authorization.k8s.io' ? 'rbac' : version === 'v2' ? `${group}/v2` : group
  const name = `${room}.${kind}`
  return messages().has(name) ? name : undefined
}

function messages(): Messages {
  parsed ??= new Map(
    `${coreFields}${otherFields}`
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => {
        const [name = '', ...fields] = line.split(' ')
        return [name, new Map(fields.map(parseField))] as const
      }),
  )
  return parsed
}

function parseField(text: string): readonly [number, Field] {
  const [number, name = '', type = '', how = 'pointer'] = text.split(':')
  return [Number(number), { name, type, how: how as Field['how'] }]
}

function read(bytes: Uint8Array, onField: (field: number, reader: BinaryReader) => boolean): void {
  const reader = new BinaryReader(bytes)
  while (reader.pos < reader.len) {
    const [field, wireType] = reader.tag()
    if (!onField(field, reader)) reader.skip(wireType, field)
  }
}

function decodeMessage(message: string, bytes: Uint8Array): JsonObject {
  const fields = messages().get(message)
  const object: JsonObject = {}
  read(bytes, (number, reader) => {
    const field = fields?.get(number)
    if (field === undefined) return false
    switch (field.how) {
      case 'inline':
        Object.assign(object, decodeMessage(field.type, reader.bytes()))
        return true
      case 'map': {
        const [key, value] = decodeMapEntry(field.type, reader.bytes())
        const map = (object[field.name] ?? {}) as JsonObject
        Object.defineProperty(map, key, { value, enumerable: true, configurable: true, writable: true })
        object[field.name] = map
        return true
      }
      case 'list': {
        const list = (object[field.name] ?? []) as unknown[]
        list.push(decodeValue(field.type, reader))
        object[field.name] = list
        return true
      }
      default: {
        const value = decodeValue(field.type, reader)
        if (value !== undefined && !(field.how === 'plain' && isZero(value))) object[field.name] = value
        return true
      }
    }
  })
  return object
}

function isZero(value: unknown): boolean {
  return value === '' || value === 0 || value === false
}

function decodeMapEntry(type: string, bytes: Uint8Array): readonly [string, unknown] {
  let key = ''
  let value: unknown = type === 'string' || type === 'bytes' ? '' : undefined
  read(bytes, (field, reader) => {
    if (field === 1) key = reader.string()
    else if (field === 2) value = decodeValue(type, reader)
    else return false
    return true
  })
  return [key, value]
}

function decodeValue(type: string, reader: BinaryReader): unknown {
  switch (type) {
    case 'string':
      return reader.string()
    case 'bool':
      return reader.bool()
    case 'int':
      return Number(reader.int64())
    case 'double':
      return reader.double()
    case 'bytes':
      return Buffer.from(reader.bytes()).toString('base64')
    case 'time':
      return decodeTime(reader.bytes(), 0)
    case 'microtime':
      return decodeTime(reader.bytes(), 6)
    case 'quantity':
      return firstString(reader.bytes())
    case 'intorstring':
      return decodeIntOrString(reader.bytes())
    case 'json':
      return decodeJson(reader.bytes())
    case 'strings':
      return decodeStrings(reader.bytes())
    default:
      return decodeMessage(type, reader.bytes())
  }
}

/** RFC 3339; undefined for the zero time, which stands for none. */
function decodeTime(bytes: Uint8Array, digits: 0 | 6): string | undefined {
  let seconds: number | undefined
  let nanos = 0
  read(bytes, (field, reader) => {
    if (field === 1) seconds = Number(reader.int64())
    else if (field === 2) nanos = reader.int32()
    else return false
    return true
  })
  if (seconds === undefined) return undefined
  const whole = new Date(seconds * 1000).toISOString().slice(0, 19)
  return digits === 0 ? `${whole}Z` : `${whole}.${String(Math.floor(nanos / 1000)).padStart(6, '0')}Z`
}

function firstString(bytes: Uint8Array): string {
  let text = ''
  read(bytes, (field, reader) => {
    if (field !== 1) return false
    text = reader.string()
    return true
  })
  return text
}

function decodeIntOrString(bytes: Uint8Array): number | string {
  let isText = false
  let number = 0
  let text = ''
  read(bytes, (field, reader) => {
    if (field === 1) isText = Number(reader.int64()) === 1
    else if (field === 2) number = reader.int32()
    else if (field === 3) text = reader.string()
    else return false
    return true
  })
  return isText ? text : number
}

function decodeJson(bytes: Uint8Array): unknown {
  let text = ''
  read(bytes, (field, reader) => {
    if (field !== 1) return false
    text = new TextDecoder().decode(reader.bytes())
    return true
  })
  if (text === '') return undefined
  try {
    return JSON.parse(text)
  } catch {
    throw badRequest('a JSON value inside the protobuf body can not be read')
  }
}

function decodeStrings(bytes: Uint8Array): string[] {
  const list: string[] = []
  read(bytes, (field, reader) => {
    if (field !== 1) return false
    list.push(reader.string())
    return true
  })
  return list
}
