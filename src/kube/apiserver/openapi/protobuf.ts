// Writes an OpenAPI version 2 document in the protobuf form that older kubectl versions ask for
// (messages of gnostic's openapiv2/OpenAPIv2.proto; field numbers below are those of its published schema).
import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire'
import { stringify } from 'yaml'
import type { Json } from './definitions.ts'

type Write = (writer: BinaryWriter) => void

/** The document as an `openapi.v2.Document` message. */
export function encodeDocument(document: Json): Uint8Array {
  const writer = new BinaryWriter()
  text(writer, 1, document.swagger)
  const info = record(document.info)
  message(writer, 2, (w) => {
    text(w, 1, info.title)
    text(w, 2, info.version)
  })
  message(writer, 8, (w) => {
    for (const [path, item] of Object.entries(record(document.paths))) {
      named(w, 2, path, (value) => writePathItem(value, record(item)))
    }
  })
  message(writer, 9, (w) => {
    for (const [name, schema] of Object.entries(record(document.definitions))) {
      named(w, 1, name, (value) => writeSchema(value, record(schema)))
    }
  })
  return writer.finish()
}

function record(value: unknown): Json {
  return typeof value === 'object' && value !== null ? (value as Json) : {}
}

function text(writer: BinaryWriter, field: number, value: unknown): void {
  if (typeof value === 'string' && value !== '') writer.tag(field, WireType.LengthDelimited).string(value)
}

function message(writer: BinaryWriter, field: number, write: Write): void {
  writer.tag(field, WireType.LengthDelimited).fork()
  write(writer)
  writer.join()
}

/** A NamedX message: `name = 1`, `value = 2`. */
function named(writer: BinaryWriter, field: number, name: string, write: Write): void {
  message(writer, field, (entry) => {
    text(entry, 1, name)
    message(entry, 2, write)
  })
}

/** NamedAny: `value = 2` is an Any with `yaml = 2`. */
function extensions(writer: BinaryWriter, field: number, source: Json): void {
  for (const [name, value] of Object.entries(source)) {
    if (name.startsWith('x-')) named(writer, field, name, (any) => text(any, 2, stringify(value)))
  }
}

function writePathItem(writer: BinaryWriter, item: Json): void {
  const methods = { get: 2, put: 3, post: 4, delete: 5, patch: 8 } as const
  for (const [method, field] of Object.entries(methods)) {
    const operation = item[method]
    if (operation !== undefined) message(writer, field, (w) => writeOperation(w, record(operation)))
  }
  for (const parameter of (item.parameters ?? []) as Json[]) {
    message(writer, 9, (w) => message(w, 1, (p) => writeParameter(p, parameter)))
  }
}

function writeOperation(writer: BinaryWriter, operation: Json): void {
  text(writer, 5, operation.operationId)
  for (const type of (operation.produces ?? []) as string[]) text(writer, 6, type)
  for (const type of (operation.consumes ?? []) as string[]) text(writer, 7, type)
  for (const parameter of (operation.parameters ?? []) as Json[]) {
    message(writer, 8, (w) => message(w, 1, (p) => writeParameter(p, parameter)))
  }
  message(writer, 9, (responses) => {
    for (const [code, response] of Object.entries(record(operation.responses))) {
      named(responses, 1, code, (value) => message(value, 1, (r) => writeResponse(r, record(response))))
    }
  })
  extensions(writer, 13, operation)
}

function writeResponse(writer: BinaryWriter, response: Json): void {
  text(writer, 1, response.description)
  if (response.schema !== undefined) {
    message(writer, 2, (item) => message(item, 1, (schema) => writeSchema(schema, record(response.schema))))
  }
}

function writeParameter(writer: BinaryWriter, parameter: Json): void {
  if (parameter.in === 'body') {
    message(writer, 1, (body) => {
      text(body, 2, parameter.name)
      text(body, 3, parameter.in)
      message(body, 5, (schema) => writeSchema(schema, record(parameter.schema)))
    })
    return
  }
  const isPath = parameter.in === 'path'
  message(writer, 2, (nonBody) =>
    message(nonBody, isPath ? 4 : 3, (sub) => {
      if (parameter.required === true) sub.tag(1, WireType.Varint).bool(true)
      text(sub, 2, parameter.in)
      text(sub, 4, parameter.name)
      text(sub, isPath ? 5 : 6, parameter.type)
    }),
  )
}

function writeSchema(writer: BinaryWriter, schema: Json): void {
  text(writer, 1, schema.$ref)
  text(writer, 2, schema.format)
  text(writer, 4, schema.description)
  for (const name of (schema.required ?? []) as string[]) text(writer, 19, name)
  const { additionalProperties, type, items, properties } = schema
  if (additionalProperties !== undefined) {
    message(writer, 21, (item) => {
      if (typeof additionalProperties === 'boolean') item.tag(2, WireType.Varint).bool(additionalProperties)
      else message(item, 1, (value) => writeSchema(value, record(additionalProperties)))
    })
  }
  if (typeof type === 'string') message(writer, 22, (item) => text(item, 1, type))
  if (items !== undefined) {
    message(writer, 23, (list) => message(list, 1, (value) => writeSchema(value, record(items))))
  }
  if (properties !== undefined) {
    message(writer, 25, (all) => {
      for (const [name, field] of Object.entries(record(properties))) {
        named(all, 1, name, (value) => writeSchema(value, record(field)))
      }
    })
  }
  extensions(writer, 31, schema)
}
