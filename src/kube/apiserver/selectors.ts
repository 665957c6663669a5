// Label and field selectors of list, watch and deletecollection.
import { badRequest } from './errors.ts'

export type Requirement =
  | { readonly kind: 'in' | 'notin'; readonly key: string; readonly values: readonly string[] }
  | { readonly kind: 'exists' | 'missing'; readonly key: string }
  | { readonly kind: 'above' | 'below'; readonly key: string; readonly bound: number }

/** The grammar of label selectors: `a=b,c!=d,e in (f,g),h notin (i),j,!k,l>1,m<2`. */
export function parseLabelSelector(text: string): readonly Requirement[] {
  if (text.trim() === '') return []
  return splitOutsideParentheses(text).map((part) => parseRequirement(part.trim(), text))
}

export function matchesLabels(requirements: readonly Requirement[], labels: Readonly<Record<string, string>>): boolean {
  return requirements.every((requirement) => matchesRequirement(requirement, labels[requirement.key]))
}

function matchesRequirement(requirement: Requirement, value: string | undefined): boolean {
  switch (requirement.kind) {
    case 'in':
      return value !== undefined && requirement.values.includes(value)
    case 'notin':
      return value === undefined || !requirement.values.includes(value)
    case 'exists':
      return value !== undefined
    case 'missing':
      return value === undefined
    case 'above':
      return value !== undefined && /^-?\d+$/.test(value) && Number(value) > requirement.bound
    case 'below':
      return value !== undefined && /^-?\d+$/.test(value) && Number(value) < requirement.bound
  }
}

function splitOutsideParentheses(text: string): string[] {
  const parts: string[] = []
  let depth = 0
  let start = 0
  for (let index = 0; index < text.length; index += 1) {
    const character = text[index]
    if (character === '(') depth += 1
    else if (character === ')') depth -= 1
    else if (character === ',' && depth === 0) {
      parts.push(text.slice(start, index))
      start = index + 1
    }
  }
  parts.push(text.slice(start))
  return parts
}

const keyPattern = /^(?:[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?\/)?[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?$/
const valuePattern = /^(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?)?$/

function parseRequirement(part: string, whole: string): Requirement {
  const refuse = (why: string) => badRequest(`unable to parse requirement in label selector "${whole}": ${why}`)
  const key = (text: string): string => {
    if (!keyPattern.test(text)) throw refuse(`"${text}" is not a label key`)
    return text
  }
  const value = (text: string): string => {
    if (!valuePattern.test(text) || text.length > 63) throw refuse(`"${text}" is not a label value`)
    return text
  }
  const set = /^(\S+)\s+(in|notin)\s*\((.*)\)$/.exec(part)
  if (set !== null) {
    const values = (set[3] ?? '').split(',').map((item) => value(item.trim()))
    return { kind: set[2] === 'in' ? 'in' : 'notin', key: key(set[1] ?? ''), values }
  }
  const comparison = /^([^=!<>\s]+)\s*(==|=|!=|>|<)\s*(.*)$/.exec(part)
  if (comparison !== null) {
    const [, name = '', operator, right = ''] = comparison
    if (operator === '>' || operator === '<') {
      if (!/^-?\d+$/.test(right)) throw refuse(`"${right}" is not an integer`)
      return { kind: operator === '>' ? 'above' : 'below', key: key(name), bound: Number(right) }
    }
    return { kind: operator === '!=' ? 'notin' : 'in', key: key(name), values: [value(right)] }
  }
  if (part.startsWith('!')) return { kind: 'missing', key: key(part.slice(1).trim()) }
  return { kind: 'exists', key: key(part) }
}

export interface FieldRequirement {
  readonly path: string
  readonly value: string
  readonly equal: boolean
}

/** `metadata.name=x,status.phase!=Running`; backslash escapes `\`, `,` and `=`. */
export function parseFieldSelector(text: string): readonly FieldRequirement[] {
  if (text.trim() === '') return []
  return splitUnescaped(text)
    .filter((term) => term !== '')
    .map((term) => {
      const found = /^((?:[^\\=!]|\\.)*?)(!=|==|=)(.*)$/s.exec(term)
      if (found === null) throw badRequest(`invalid field selector "${text}": can't understand "${term}"`)
      const [, path = '', operator, value = ''] = found
      return { path: path.trim(), value: value.replace(/\\([\\,=])/g, '$1'), equal: operator !== '!=' }
    })
}

function splitUnescaped(text: string): string[] {
  const terms: string[] = []
  let term = ''
  for (let index = 0; index < text.length; index += 1) {
    const character = text[index] ?? ''
    if (character === '\\') {
      term += character + (text[index + 1] ?? '')
      index += 1
    } else if (character === ',') {
      terms.push(term)
      term = ''
    } else term += character
  }
  terms.push(term)
  return terms
}

/** The fields that a selector wants equal to one value each. What can't be read selects nothing here: the request is refused when it is served. */
export function equalFields(text: string): Readonly<Record<string, string>> {
  try {
    return Object.fromEntries(
      parseFieldSelector(text)
        .filter(({ equal }) => equal)
        .map(({ path, value }) => [path, value]),
    )
  } catch {
    return {}
  }
}
