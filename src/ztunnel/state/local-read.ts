// Reading one value of a local file: each function takes a value and the path it stands at, and says both when it is not what it should be.
import { canonicalIp } from './address.ts'
import { StateError } from './errors.ts'

export interface At {
  readonly value: unknown
  readonly path: string
}

export type ObjectAt = ReadonlyMap<string, At>

export function fail(at: At, expected: string): never {
  const shown = at.value === undefined ? 'nothing' : JSON.stringify(at.value)
  throw new StateError('INVALID_LOCAL_FILE', `${at.path}: expected ${expected}, got ${shown}`)
}

/** The fields of an object. Keys not listed are an error, required ones must be there. */
export function readObject(at: At, required: readonly string[], optional: readonly string[]): ObjectAt {
  const fields = readMap(at)
  for (const [key, field] of fields) {
    if (required.includes(key) || optional.includes(key)) continue
    const known = [...required, ...optional].join(', ')
    throw new StateError('INVALID_LOCAL_FILE', `${field.path}: unknown key ${key}, expected one of ${known}`)
  }
  for (const key of required) {
    if (!fields.has(key)) throw new StateError('INVALID_LOCAL_FILE', `${at.path}: missing key ${key}`)
  }
  return fields
}

export function readMap(at: At): ObjectAt {
  if (typeof at.value !== 'object' || at.value === null || Array.isArray(at.value)) return fail(at, 'an object')
  return new Map(
    Object.entries(at.value)
      .filter(([, value]) => value !== null && value !== undefined)
      .map(([key, value]) => [key, { value, path: `${at.path}.${key}` }]),
  )
}

export function readList<T>(at: At | undefined, read: (one: At) => T): readonly T[] {
  if (at === undefined) return []
  if (!Array.isArray(at.value)) return fail(at, 'a list')
  return at.value.map((value, index) => read({ value, path: `${at.path}[${index}]` }))
}

export function readText(at: At | undefined): string {
  if (at === undefined) return ''
  return typeof at.value === 'string' ? at.value : fail(at, 'a text')
}

export function readBoolean(at: At | undefined): boolean {
  if (at === undefined) return false
  return typeof at.value === 'boolean' ? at.value : fail(at, 'true or false')
}

export function readChoice<T extends string>(at: At | undefined, choices: readonly T[], otherwise: T): T {
  if (at === undefined) return otherwise
  return choices.find((choice) => choice === at.value) ?? fail(at, `one of ${choices.join(', ')}`)
}

export function readNumber(at: At, max: number): number {
  const number = typeof at.value === 'string' && /^\d+$/.test(at.value) ? Number(at.value) : at.value
  if (typeof number !== 'number' || !Number.isInteger(number) || number < 0 || number > max) {
    return fail(at, `a whole number up to ${max}`)
  }
  return number
}

export const readPort = (at: At): number => readNumber(at, 65535)

/** Service port → target port; the keys may be numbers or texts. */
export function readPorts(at: At | undefined): ReadonlyMap<number, number> {
  if (at === undefined) return new Map()
  return new Map(
    [...readMap(at)].map(([key, port]) => [readPort({ value: key, path: port.path }), readPort(port)] as const),
  )
}

export function readIp(at: At): string {
  return (typeof at.value === 'string' ? canonicalIp(at.value) : undefined) ?? fail(at, 'an IP address')
}
