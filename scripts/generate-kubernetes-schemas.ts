// Generates src/api/gen/kubernetes.js: the schemas of the built-in kinds of Kubernetes, from the models of @kubernetes/client-node
// (field names and types from their attribute maps, required fields and descriptions from their declarations).
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Schema as Resolved } from '../src/api/kind.ts'
import { kubernetesKinds } from '../src/api/kubernetes-kind-table.ts'
import { mergeKeys } from '../src/api/merge-keys.ts'

/** A schema as generated: named definitions refer to each other. */
type Schema = Omit<Resolved, 'properties' | 'items' | 'additionalProperties'> & {
  readonly $ref?: string
  readonly properties?: Readonly<Record<string, Schema>>
  readonly items?: Schema
  readonly additionalProperties?: Schema
}

interface Attribute {
  readonly baseName: string
  readonly type: string
  readonly format: string
}

const root = join(import.meta.dirname, '..')
const models = join(
  dirname(createRequire(import.meta.url).resolve('@kubernetes/client-node/package.json')),
  'dist/gen/models',
)
const classes = (await import(pathToFileURL(join(models, 'all.js')).href)) as Record<
  string,
  { getAttributeTypeMap?: () => readonly Attribute[] }
>

const metaTypes =
  /^V1(ObjectMeta|ListMeta|OwnerReference|ManagedFieldsEntry|LabelSelector|LabelSelectorRequirement|FieldSelectorRequirement|Status|StatusDetails|StatusCause|Condition|DeleteOptions|Preconditions|MicroTime)$/
/** Quantities are declared as text, but a number is accepted too. */
const quantities =
  /^(limits|requests|capacity|allocatable|hard|used|default|defaultRequest|max|min|maxLimitRequestRatio|overhead|sizeLimit|divisor|allocatedResources|averageValue)$/
const quantity: Schema = { oneOf: [{ type: 'string' }, { type: 'number' }] }
const open: Schema = { 'x-kubernetes-preserve-unknown-fields': true }
const definitions: Record<string, Schema> = {}
const names = new Map<string, string>()

/** The name of a model in OpenAPI: that of the API group that uses it first. */
function nameOf(model: string, groupVersion: string): string {
  const known = names.get(model)
  if (known !== undefined) return known
  const kind = model.replace(/^(?:[A-Z][a-z]+)?V\d+(?:alpha\d+|beta\d+)?(?=[A-Z])/, '')
  const name = metaTypes.test(model) ? `io.k8s.apimachinery.pkg.apis.meta.v1.${kind}` : `${groupVersion}.${kind}`
  names.set(model, name)
  return name
}

function declarationsOf(model: string): {
  text: string
  fields: Map<string, { required: boolean; description: string }>
} {
  const source = readFileSync(join(models, `${model}.d.ts`), 'utf8')
  const clean = (comment: string): string =>
    comment
      .split('\n')
      .map((line) => line.replace(/^\s*\*\s?/, ''))
      .join(' ')
      .replaceAll(/\\(.)/g, '$1')
      .trim()
  const fields = new Map<string, { required: boolean; description: string }>()
  for (const match of source.matchAll(/(?:\/\*\*((?:(?!\*\/).)*)\*\/\s*)?'_?(\w+|[\w-]+)'(\?)?: /gs)) {
    fields.set(match[2] ?? '', { required: match[3] === undefined, description: clean(match[1] ?? '') })
  }
  const about = /\/\*\*((?:(?!\*\/).)*)\*\/\s*export declare class/s.exec(source)
  return { text: clean(about?.[1] ?? ''), fields }
}

function schemaOf(type: string, format: string, groupVersion: string): Schema {
  const items = /^(?:Array|Set)<(.*)>$/.exec(type)
  if (items !== null) return { type: 'array', items: schemaOf(items[1] ?? '', format, groupVersion) }
  const values = /^\{ \[key: string\]: (.*); \}$/.exec(type)
  if (values !== null) {
    return { type: 'object', additionalProperties: schemaOf(values[1] ?? '', format, groupVersion) }
  }
  switch (type) {
    case 'string':
      return { type: 'string', ...(format === '' ? {} : { format }) }
    case 'number':
      return format === 'double'
        ? { type: 'number', format }
        : { type: 'integer', ...(format === '' ? {} : { format }) }
    case 'boolean':
      return { type: 'boolean' }
    case 'Date':
    case 'V1MicroTime':
      return { type: 'string', format: 'date-time' }
    case 'IntOrString':
      return { 'x-kubernetes-int-or-string': true }
    case 'any':
      return open
    case 'object':
      return { type: 'object', 'x-kubernetes-preserve-unknown-fields': true }
    default:
      define(type, groupVersion)
      return { $ref: `#/definitions/${nameOf(type, groupVersion)}` }
  }
}

function define(model: string, groupVersion: string): void {
  const name = nameOf(model, groupVersion)
  if (name in definitions) return
  const attributes = classes[model]?.getAttributeTypeMap?.()
  if (attributes === undefined) throw new Error(`@kubernetes/client-node has no model ${model}`)
  definitions[name] = {}
  const declared = declarationsOf(model)
  const properties: Record<string, Schema> = {}
  const required: string[] = []
  for (const { baseName, type, format } of attributes) {
    const field = declared.fields.get(baseName.replaceAll('-', '_')) ?? declared.fields.get(baseName.replace(/^\$/, ''))
    if (field?.required === true) required.push(baseName)
    const isQuantity = quantities.test(baseName) && model !== 'V1JSONSchemaProps'
    properties[baseName] = {
      ...(isQuantity && type === 'string'
        ? quantity
        : isQuantity && type.startsWith('{')
          ? { type: 'object', additionalProperties: quantity }
          : schemaOf(type, format, groupVersion)),
      ...(field?.description ? { description: field.description } : {}),
      ...mergeKeys[`${model}.${baseName}`],
    }
  }
  definitions[name] = {
    type: 'object',
    ...(declared.text === '' ? {} : { description: declared.text }),
    properties,
    ...(required.length > 0 ? { required } : {}),
  }
}

const kinds: Record<string, string> = {}
for (const kind of kubernetesKinds) {
  const group = kind.group === '' ? 'core' : (kind.group.split('.')[0] ?? '')
  const prefix = kind.group.startsWith('apiextensions')
    ? 'io.k8s.apiextensions-apiserver.pkg.apis.apiextensions'
    : `io.k8s.api.${group}`
  const groupVersion = `${prefix}.${kind.version}`
  define(kind.model, groupVersion)
  kinds[`${kind.group}/${kind.version}/${kind.kind}`] = nameOf(kind.model, groupVersion)
}
for (const model of ['V1Status', 'V1DeleteOptions', 'V1ListMeta']) define(model, 'io.k8s.apimachinery.pkg.apis.meta.v1')

const out = join(root, 'src/api/gen')
rmSync(out, { recursive: true, force: true })
mkdirSync(out, { recursive: true })
writeFileSync(
  join(out, 'kubernetes.js'),
  `// Generated by scripts/generate-kubernetes-schemas.ts.\nexport const kinds = ${JSON.stringify(kinds)}\nexport const definitions = JSON.parse(${JSON.stringify(JSON.stringify(definitions))})\n`,
)
writeFileSync(
  join(out, 'kubernetes.d.ts'),
  `import type { RawSchema } from '../kubernetes-schemas.ts'\n/** Name of the definition of each kind, by \`group/version/kind\`. */\nexport declare const kinds: Readonly<Record<string, string>>\nexport declare const definitions: Readonly<Record<string, RawSchema>>\n`,
)
