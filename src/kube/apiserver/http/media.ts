// Media types: what a body is written in, and what the client wants back.
import { parse } from 'yaml'
import { ApiError, badRequest, unsupportedMediaType } from '../errors.ts'
import { decodeProtobuf, protobufType } from '../protobuf/decode.ts'

export type View = 'object' | 'table' | 'metadata'

export interface Wanted {
  readonly view: View
  readonly format: 'json' | 'yaml'
  /** `v1` or `v1beta1` of meta.k8s.io, for tables. */
  readonly metaVersion: string
}

/** The first type of an Accept header that can be served. Throws ApiError 406. */
export function parseAccept(header: string | undefined): Wanted {
  const plain: Wanted = { view: 'object', format: 'json', metaVersion: 'v1' }
  if (header === undefined || header.trim() === '') return plain
  for (const part of header.split(',')) {
    const [type = '', ...parameters] = part.split(';').map((word) => word.trim())
    const format = formatOf(type.toLowerCase())
    if (format === undefined) continue
    const values = new Map(parameters.map((parameter) => splitOnce(parameter)))
    const as = values.get('as')
    const metaVersion = values.get('v') ?? 'v1'
    if (as === undefined) return { ...plain, format }
    if (values.get('g') !== 'meta.k8s.io' || !['v1', 'v1beta1'].includes(metaVersion)) continue
    if (as === 'Table') return { view: 'table', format, metaVersion }
    if (as === 'PartialObjectMetadata' || as === 'PartialObjectMetadataList')
      return { view: 'metadata', format, metaVersion }
  }
  throw new ApiError(
    406,
    'NotAcceptable',
    'only the following media types are accepted: application/json, application/yaml, application/json;as=Table;g=meta.k8s.io;v=v1',
  )
}

function formatOf(type: string): 'json' | 'yaml' | undefined {
  if (type === 'application/json' || type === '*/*' || type === 'application/*') return 'json'
  if (type === 'application/yaml') return 'yaml'
  return undefined
}

function splitOnce(text: string): readonly [string, string] {
  const at = text.indexOf('=')
  return at < 0 ? [text, ''] : [text.slice(0, at), text.slice(at + 1)]
}

/** The media type without parameters. */
export function mediaType(header: string | undefined): string {
  return (header ?? '').split(';')[0]?.trim().toLowerCase() ?? ''
}

const yamlTypes = ['application/yaml', 'application/apply-patch+yaml']

/** A body as a JSON value; undefined when it is empty. Throws ApiError 400 or 415. */
export function parseBody(bytes: Uint8Array, type: string): unknown {
  if (bytes.length === 0) return undefined
  if (type === protobufType) return decodeProtobuf(bytes)
  const text = new TextDecoder().decode(bytes)
  const isYaml = yamlTypes.includes(type)
  if (!isYaml && type !== '' && type !== 'application/json' && !type.endsWith('+json')) {
    throw unsupportedMediaType(
      `the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, ${protobufType} (got ${type})`,
    )
  }
  try {
    return isYaml ? parse(text, { maxAliasCount: 100 }) : JSON.parse(text)
  } catch (error) {
    throw badRequest(`the body of the request could not be read: ${error instanceof Error ? error.message : error}`)
  }
}
