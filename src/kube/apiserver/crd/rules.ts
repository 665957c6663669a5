// The rules of schemas (`x-kubernetes-validations`), written in CEL: compiled once, evaluated at each write.
// Rules with functions that this evaluator lacks (those of Kubernetes' own libraries, such as quantity or cidr) are not enforced; who
// creates such a definition is told so.
import { type CelInput, celEnv, isCelError, parse, plan } from '@bufbuild/cel'
import { strings } from '@bufbuild/cel/ext'
import type { Cause, KubeObject, Schema } from '../../../api/index.ts'

type Rule = NonNullable<Schema['x-kubernetes-validations']>[number]
type Evaluate = (bindings: Record<string, CelInput>) => unknown

interface CompiledRule {
  readonly rule: Rule
  readonly evaluate: Evaluate
  readonly message?: Evaluate
  /** Compares with the value before: not evaluated when there was none. */
  readonly isTransition: boolean
}

export interface SchemaRules {
  readonly check: (object: KubeObject, old?: KubeObject) => readonly Cause[]
  /** Rules that are not enforced, as `path: rule`. */
  readonly unsupported: readonly string[]
}

const standardFunctions = new Set(
  'size contains startsWith endsWith matches int uint double string bytes bool timestamp duration type dyn getFullYear getMonth getDate getDayOfMonth getDayOfWeek getDayOfYear getHours getMinutes getSeconds getMilliseconds charAt indexOf lastIndexOf join quote replace split substring trim lowerAscii upperAscii reverse format'.split(
    ' ',
  ),
)

const environment = celEnv({ funcs: strings })

export function compileRules(schema: Schema): SchemaRules {
  const compiled = new Map<Schema, readonly CompiledRule[]>()
  const unsupported: string[] = []
  compileAll(schema, '', compiled, unsupported)
  return {
    unsupported,
    check(object, old) {
      if (compiled.size === 0) return []
      const causes: Cause[] = []
      visit(compiled, schema, object, old, '', causes)
      return causes
    },
  }
}

function compileAll(
  schema: Schema,
  path: string,
  compiled: Map<Schema, readonly CompiledRule[]>,
  unsupported: string[],
): void {
  const rules = (schema['x-kubernetes-validations'] ?? []).flatMap((rule) => {
    const result = compile(rule)
    if (result === undefined) unsupported.push(`${path === '' ? '<root>' : path}: ${rule.rule}`)
    return result ?? []
  })
  if (rules.length > 0) compiled.set(schema, rules)
  for (const [name, field] of Object.entries(schema.properties ?? {})) {
    compileAll(field, path === '' ? name : `${path}.${name}`, compiled, unsupported)
  }
  if (schema.items !== undefined) compileAll(schema.items, `${path}[*]`, compiled, unsupported)
  if (typeof schema.additionalProperties === 'object') {
    compileAll(schema.additionalProperties, `${path}.*`, compiled, unsupported)
  }
}

function compile(rule: Rule): CompiledRule | undefined {
  const evaluate = program(rule.rule)
  if (evaluate === undefined) return undefined
  const message = rule.messageExpression === undefined ? undefined : program(rule.messageExpression)
  return {
    rule,
    evaluate,
    isTransition: /\boldSelf\b/.test(rule.rule),
    ...(message === undefined ? {} : { message }),
  }
}

function program(expression: string): Evaluate | undefined {
  try {
    const parsed = parse(expression)
    if (functionsOf(parsed.expr).some((name) => /^[A-Za-z]/.test(name) && !standardFunctions.has(name)))
      return undefined
    return plan(environment, parsed) as Evaluate
  } catch {
    return undefined
  }
}

/** The names of all functions that a parsed expression calls. */
function functionsOf(node: unknown): string[] {
  if (typeof node !== 'object' || node === null) return []
  const own =
    '$typeName' in node && node.$typeName === 'cel.expr.Expr.Call' && 'function' in node ? [String(node.function)] : []
  return [...own, ...Object.values(node).flatMap(functionsOf)]
}

function visit(
  compiled: ReadonlyMap<Schema, readonly CompiledRule[]>,
  schema: Schema,
  value: unknown,
  old: unknown,
  path: string,
  causes: Cause[],
): void {
  if (value === undefined || value === null) return
  for (const rule of compiled.get(schema) ?? []) {
    const cause = evaluateRule(rule, schema, value, old, path)
    if (cause !== undefined) causes.push(cause)
  }
  if (Array.isArray(value)) {
    const { items } = schema
    if (items === undefined) return
    value.forEach((item, index) => {
      visit(compiled, items, item, counterpart(schema, item, old), `${path}[${index}]`, causes)
    })
  } else if (typeof value === 'object') {
    const before = isRecord(old) ? old : {}
    for (const [name, item] of Object.entries(value)) {
      const field = schema.properties?.[name] ?? schema.additionalProperties
      if (typeof field !== 'object') continue
      visit(compiled, field, item, before[name], path === '' ? name : `${path}.${name}`, causes)
    }
  }
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** The element that the item replaces; only elements with keys can be told. */
function counterpart(schema: Schema, item: unknown, old: unknown): unknown {
  const keys = schema['x-kubernetes-list-map-keys'] ?? []
  if (!Array.isArray(old) || !isRecord(item) || keys.length === 0) return undefined
  return old.find((candidate) => isRecord(candidate) && keys.every((key) => candidate[key] === item[key]))
}

function evaluateRule(
  { rule, evaluate, message, isTransition }: CompiledRule,
  schema: Schema,
  value: unknown,
  old: unknown,
  path: string,
): Cause | undefined {
  if (isTransition && (old === undefined || old === null)) return undefined
  const bindings = {
    self: toCel(schema, value),
    ...(old === undefined || old === null ? {} : { oldSelf: toCel(schema, old) }),
  }
  const result = evaluate(bindings)
  if (result === true) return undefined
  const field = rule.fieldPath === undefined ? path : `${path}${rule.fieldPath}`
  if (isCelError(result)) {
    const why = `Invalid value: ${shown(value)}: rule evaluation error: ${result.message}`
    return { reason: 'FieldValueInvalid', field, message: why }
  }
  const own = message?.(bindings)
  const why = typeof own === 'string' ? own : (rule.message ?? `failed rule: ${rule.rule}`)
  if (rule.reason === 'FieldValueForbidden')
    return { reason: 'FieldValueForbidden', field, message: `Forbidden: ${why}` }
  if (rule.reason === 'FieldValueRequired')
    return { reason: 'FieldValueRequired', field, message: `Required value: ${why}` }
  return { reason: 'FieldValueInvalid', field, message: `Invalid value: ${shown(value)}: ${why}` }
}

function shown(value: unknown): string {
  if (Array.isArray(value)) return '"array"'
  return isRecord(value) ? '"object"' : JSON.stringify(value)
}

/** Integers, floating numbers and maps are different types in CEL; the schema tells which one a JSON value is. */
function toCel(schema: Schema | undefined, value: unknown): CelInput {
  if (Array.isArray(value)) return value.map((item) => toCel(schema?.items, item))
  if (isRecord(value)) {
    return new Map(
      Object.entries(value).map(([name, item]) => {
        const field = schema?.properties?.[name]
        const other = typeof schema?.additionalProperties === 'object' ? schema.additionalProperties : undefined
        return [field === undefined ? name : escaped(name), toCel(field ?? other, item)] as const
      }),
    )
  }
  if (typeof value === 'number') return schema?.type !== 'number' && Number.isInteger(value) ? BigInt(value) : value
  return value as string | boolean | null
}

const reserved = new Set(
  'true false null in as break const continue else for function if import let loop package namespace return var void while'.split(
    ' ',
  ),
)

/** Names of fields as expressions write them. */
function escaped(name: string): string {
  if (reserved.has(name)) return `__${name}__`
  return name
    .replaceAll('__', '__underscores__')
    .replaceAll('.', '__dot__')
    .replaceAll('-', '__dash__')
    .replaceAll('/', '__slash__')
}
