// Typed reading of environment variables. An empty variable counts as absent unless it is read as text.
import { ConfigError, invalidVariable } from './errors.ts'

export type Environment = Readonly<Record<string, string | undefined>>

export function readBoolean(env: Environment, name: string, otherwise: boolean): boolean {
  const value = env[name]
  if (value === undefined || value === '') return otherwise
  if (value !== 'true' && value !== 'false') throw invalidVariable(name, value, 'expected true or false')
  return value === 'true'
}

export function readOptionalBoolean(env: Environment, name: string): boolean | undefined {
  return env[name] === undefined || env[name] === '' ? undefined : readBoolean(env, name, false)
}

export function readInteger(env: Environment, name: string, min = 0, max = 0xffffffff): number | undefined {
  const value = env[name]
  if (value === undefined || value === '') return undefined
  const number = Number(value)
  if (!/^\d+$/.test(value) || number < min || number > max) {
    throw invalidVariable(name, value, `expected a whole number from ${min} to ${max}`)
  }
  return number
}

export function readDurationMs(env: Environment, name: string): number | undefined {
  const value = env[name]
  if (value === undefined || value === '') return undefined
  const duration = parseDurationMs(value)
  if (duration === undefined) throw invalidVariable(name, value, 'expected a duration such as 30s or 1h30m')
  return duration
}

const unitMs: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
}

/** `1h30m`, `250ms`, or a bare number of seconds. */
export function parseDurationMs(text: string): number | undefined {
  if (/^\d+(\.\d+)?$/.test(text)) return Number(text) * 1000
  if (!/^(\d+(\.\d+)?\s*(ns|us|ms|s|m|h|d)\s*)+$/.test(text)) return undefined
  let total = 0
  for (const [, number, , unit] of text.matchAll(/(\d+(\.\d+)?)\s*(ns|us|ms|s|m|h|d)/g)) {
    total += Number(number) * (unitMs[unit ?? ''] ?? 0)
  }
  return total
}

/** A Kubernetes CPU quantity (`2`, `1.5`, `500m`), rounded up to whole CPUs. */
export function readCpuQuantity(env: Environment, name: string): number | undefined {
  const value = env[name]
  if (value === undefined || value === '') return undefined
  const match = /^(\d+(?:\.\d+)?)(m?)$/.exec(value)
  const cpus = match === null ? Number.NaN : Number(match[1]) / (match[2] === 'm' ? 1000 : 1)
  if (!(cpus > 0)) throw invalidVariable(name, value, 'expected a CPU quantity above zero such as 2, 1.5 or 500m')
  return Math.ceil(cpus)
}

/** All variables `<prefix><K>`, as gRPC metadata `<K>`. */
export function readHeaders(env: Environment, prefix: string): Readonly<Record<string, string>> {
  const headers: Record<string, string> = {}
  for (const [name, value] of Object.entries(env)) {
    if (!name.startsWith(prefix) || value === undefined) continue
    const key = name.slice(prefix.length)
    if (!/^[A-Za-z0-9_.-]+$/.test(key)) throw new ConfigError(`invalid env var ${name}: ${key} is not a header name`)
    if (!/^[\x20-\x7e]*$/.test(value)) throw new ConfigError(`invalid env var ${name}: its value is not a header value`)
    headers[key] = value
  }
  return headers
}
