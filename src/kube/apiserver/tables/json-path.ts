// The JSONPath that printer columns and scale paths use: fields, indexes, wildcards, and filters on equality.
import { isObject } from '../json.ts'

type Step =
  | { readonly kind: 'field'; readonly name: string }
  | { readonly kind: 'index'; readonly index: number }
  | { readonly kind: 'all' }
  | {
      readonly kind: 'filter'
      readonly path: readonly Step[]
      readonly operator: '==' | '!=' | 'exists'
      readonly value: unknown
    }

const parsed =
  /^\.?([A-Za-z0-9_$@-](?:[^.[\\]|\\.)*)|^\[(-?\d+)\]|^\[\*\]|^\.\*|^\[(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)")\]/

/** The values at a path such as `.status.conditions[?(@.type=="Ready")].status`; none where nothing is there. */
export function readJsonPath(value: unknown, path: string): unknown[] {
  const steps = parsePath(path)
  return steps === undefined ? [] : follow([value], steps)
}

/** Undefined when the path can't be read. */
export function parsePath(path: string): readonly Step[] | undefined {
  let rest = path
    .trim()
    .replace(/^\{(.*)\}$/, '$1')
    .replace(/^\$/, '')
  const steps: Step[] = []
  while (rest !== '' && rest !== '.') {
    const filter = /^\[\?\(\s*@(.*?)\s*(?:(==|!=)\s*("[^"]*"|'[^']*'|[^)\s]+)\s*)?\)\]/.exec(rest)
    if (filter !== null) {
      const inner = parsePath(filter[1] ?? '')
      if (inner === undefined) return undefined
      const operator = filter[2] === '==' || filter[2] === '!=' ? filter[2] : 'exists'
      steps.push({ kind: 'filter', path: inner, operator, value: literal(filter[3] ?? '') })
      rest = rest.slice(filter[0].length)
      continue
    }
    const found = parsed.exec(rest)
    if (found === null) return undefined
    const name = found[1] ?? found[3] ?? found[4]
    if (name !== undefined) steps.push({ kind: 'field', name: name.replace(/\\(.)/g, '$1') })
    else if (found[2] !== undefined) steps.push({ kind: 'index', index: Number(found[2]) })
    else steps.push({ kind: 'all' })
    rest = rest.slice(found[0].length)
  }
  return steps
}

function literal(text: string): unknown {
  if (/^(".*"|'.*')$/.test(text)) return text.slice(1, -1)
  if (text === 'true') return true
  if (text === 'false') return false
  return text !== '' && !Number.isNaN(Number(text)) ? Number(text) : text
}

function follow(values: readonly unknown[], steps: readonly Step[]): unknown[] {
  let here = [...values]
  for (const step of steps) here = here.flatMap((value) => stepInto(value, step))
  return here.filter((value) => value !== undefined && value !== null)
}

function stepInto(value: unknown, step: Step): unknown[] {
  switch (step.kind) {
    case 'field':
      return isObject(value) && Object.hasOwn(value, step.name) ? [value[step.name]] : []
    case 'index':
      return Array.isArray(value) ? [value.at(step.index)] : []
    case 'all':
      return Array.isArray(value) ? value : isObject(value) ? Object.values(value) : []
    case 'filter': {
      if (!Array.isArray(value)) return []
      return value.filter((item) => {
        const found = follow([item], step.path)
        if (step.operator === 'exists') return found.length > 0
        return found.some((one) => one === step.value) === (step.operator === '==')
      })
    }
  }
}
