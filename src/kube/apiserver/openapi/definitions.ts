// Turns the schemas of kinds into OpenAPI definitions that refer to each other by name.
import { apiVersionOf, type Schema } from '../../../api/index.ts'
import type { KindDefinition } from '../types.ts'

export type Json = Record<string, unknown>

/** Where references point: `#/definitions/` in version 2, `#/components/schemas/` in version 3. */
export type Dialect = 'v2' | 'v3'

const prefixes = { v2: '#/definitions/', v3: '#/components/schemas/' } as const
const meta = 'io.k8s.apimachinery.pkg.apis.meta.v1'

/** The name of a kind's definition: that of Kubernetes for built-in kinds, the reversed group otherwise. */
export function definitionName(kind: KindDefinition): string {
  const own = kind.schema?.definition
  if (own !== undefined) return own
  return [...kind.group.split('.').toReversed(), kind.version, kind.kind].join('.')
}

/** The definitions of these kinds, their lists, and everything they refer to. */
export function definitionsOf(
  kinds: readonly KindDefinition[],
  shared: ReadonlyMap<string, Schema>,
  dialect: Dialect,
): Readonly<Record<string, Json>> {
  const definitions: Record<string, Json> = {}
  const prefix = prefixes[dialect]

  const refer = (name: string, schema: Schema): Json => {
    if (!(name in definitions)) {
      definitions[name] = {}
      definitions[name] = convert(schema)
    }
    return { $ref: `${prefix}${name}` }
  }
  const field = (schema: Schema): Json => {
    const { definition } = schema
    if (definition === undefined) return convert(schema)
    const reference = refer(definition, shared.get(definition) ?? schema)
    const { description } = schema
    const strategy = schema['x-kubernetes-patch-strategy']
    const extra = {
      ...(description === undefined ? {} : { description }),
      ...(strategy === undefined ? {} : { 'x-kubernetes-patch-strategy': strategy }),
    }
    if (Object.keys(extra).length === 0) return reference
    return dialect === 'v3' ? { allOf: [reference], default: {}, ...extra } : { ...reference, ...extra }
  }
  const convert = (schema: Schema): Json => {
    const { definition: _, properties, items, additionalProperties, allOf, anyOf, oneOf, not, ...rest } = schema
    const out: Json = { ...rest }
    if (properties !== undefined) {
      out.properties = Object.fromEntries(Object.entries(properties).map(([name, value]) => [name, field(value)]))
    }
    if (items !== undefined) out.items = field(items)
    if (typeof additionalProperties === 'object') out.additionalProperties = field(additionalProperties)
    else if (additionalProperties !== undefined) out.additionalProperties = additionalProperties
    if (dialect === 'v3') {
      for (const [name, parts] of Object.entries({ allOf, anyOf, oneOf })) {
        if (parts !== undefined) out[name] = parts.map(convert)
      }
      if (not !== undefined) out.not = convert(not)
      if (schema['x-kubernetes-int-or-string'] === true) out.anyOf = [{ type: 'integer' }, { type: 'string' }]
      return out
    }
    return withoutV3Words(out, schema, oneOf)
  }

  for (const kind of kinds) {
    const name = definitionName(kind)
    const schema = kind.schema ?? { type: 'object', 'x-kubernetes-preserve-unknown-fields': true }
    refer(name, schema)
    const gvk = { group: kind.group, version: kind.version, kind: kind.kind }
    definitions[name] = { ...definitions[name], 'x-kubernetes-group-version-kind': [gvk] }
    if (kind.verbs !== undefined && !kind.verbs.includes('list')) continue
    definitions[name.replace(/[^.]+$/, kind.listKind)] = listDefinition(kind, `${prefix}${name}`, prefix)
    refer(`${meta}.ListMeta`, shared.get(`${meta}.ListMeta`) ?? { type: 'object' })
  }
  for (const common of ['DeleteOptions', 'Status', 'ObjectMeta']) {
    const schema = shared.get(`${meta}.${common}`)
    if (schema !== undefined) refer(`${meta}.${common}`, schema)
  }
  return definitions
}

/** OpenAPI 2 has no nullable and no combinations; quantities and int-or-string are text with a format. */
function withoutV3Words(out: Json, schema: Schema, oneOf: readonly Schema[] | undefined): Json {
  delete out.nullable
  if (schema['x-kubernetes-int-or-string'] === true) return { ...out, type: 'string', format: 'int-or-string' }
  if (schema.type === undefined && oneOf?.some((part) => part.type === 'string') === true) out.type = 'string'
  if (schema['x-kubernetes-preserve-unknown-fields'] === true && schema.properties === undefined) {
    delete out.additionalProperties
  }
  return out
}

function listDefinition(kind: KindDefinition, item: string, prefix: string): Json {
  return {
    description: `${kind.listKind} is a list of ${kind.kind}`,
    type: 'object',
    required: ['items'],
    properties: {
      apiVersion: { type: 'string', description: `Always ${apiVersionOf(kind)}.` },
      items: { type: 'array', items: { $ref: item }, description: `List of ${kind.plural}.` },
      kind: { type: 'string', description: `Always ${kind.listKind}.` },
      metadata: { $ref: `${prefix}${meta}.ListMeta` },
    },
    'x-kubernetes-group-version-kind': [{ group: kind.group, version: kind.version, kind: kind.listKind }],
  }
}
