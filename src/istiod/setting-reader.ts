// Reads flags and environment variables, and says of a wrong one what was expected.
import { isIP } from 'node:net'
import { parseGoDuration } from '../util/index.ts'

export class SettingError extends Error {
  readonly code = 'INVALID_SETTING'
}

export type Environment = Readonly<Record<string, string | undefined>>

export function duration(name: string, text: string | undefined, fallbackMs: number): number {
  if (text === undefined || text === '') return fallbackMs
  const ms = parseGoDuration(text)
  if (ms === undefined || ms < 0) throw new SettingError(`${name}: expected a duration such as 30s, not "${text}"`)
  return ms
}

/** `host:port`, `:port`, or empty for a listener that is off. */
export function listenAddress(name: string, text: string): string {
  if (text === '') return text
  const port = Number(/^(?:.*):(\d{1,5})$/.exec(text)?.[1] ?? Number.NaN)
  if (!(port >= 0 && port <= 65_535)) throw new SettingError(`${name}: expected host:port or :port, not "${text}"`)
  return text
}

export interface SettingReader {
  flag(name: string, fallback: boolean): boolean
  /** A whole number that is not negative. */
  number(name: string, fallback: number): number
  duration(name: string, fallbackMs: number): number
  list(name: string, fallback: string): readonly string[]
  /** A CIDR of the family. */
  prefix(name: string, family: 4 | 6, fallback: string): string
}

export function booleanFlag(name: string, text: string | undefined, fallback: boolean): boolean {
  if (text === undefined || text === '') return fallback
  if (/^(true|t|1)$/i.test(text)) return true
  if (/^(false|f|0)$/i.test(text)) return false
  throw new SettingError(`${name}: expected true or false, not "${text}"`)
}

export function settingReader(env: Environment): SettingReader {
  return {
    flag: (name, fallback) => booleanFlag(name, env[name], fallback),
    number(name, fallback) {
      const text = env[name]
      if (text === undefined || text === '') return fallback
      const value = Number(text)
      if (!Number.isSafeInteger(value) || value < 0) {
        throw new SettingError(`${name}: expected a whole number that is not negative, not "${text}"`)
      }
      return value
    },
    duration: (name, fallbackMs) => duration(name, env[name], fallbackMs),
    list: (name, fallback) => splitList(env[name] || fallback),
    prefix(name, family, fallback) {
      const text = env[name] || fallback
      const [address = '', length = '', ...more] = text.split('/')
      const isPrefix = isIP(address) === family && !address.includes('%') && /^\d{1,3}$/.test(length)
      if (isPrefix && Number(length) <= (family === 4 ? 32 : 128) && more.length === 0) return text
      throw new SettingError(`${name}: expected an IPv${family} prefix such as ${fallback}, not "${text}"`)
    },
  }
}

/** The entries of a list written with commas. */
export function splitList(text: string): readonly string[] {
  return text
    .split(',')
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '')
}

/** `domain|https://…||domain|https://…`: where the roots of other trust domains are published. */
export function parseBundleEndpoints(text: string): readonly { readonly trustDomain: string; readonly url: string }[] {
  if (text.trim() === '') return []
  return text.split('||').map((entry) => {
    const [trustDomain = '', url = '', ...more] = entry.split('|').map((part) => part.trim())
    if (trustDomain === '' || URL.parse(url)?.protocol !== 'https:' || more.length > 0) {
      throw new SettingError(`SPIFFE_BUNDLE_ENDPOINTS: expected domain|https://…, not "${entry}"`)
    }
    return { trustDomain, url }
  })
}

/** `alias=cluster,…`: the cluster of each alias. */
export function parseClusterAliases(text: string): ReadonlyMap<string, string> {
  const clusters = new Map<string, string>()
  for (const entry of splitList(text)) {
    const [alias = '', cluster = '', ...more] = entry.split('=')
    if (alias === '' || cluster === '' || more.length > 0) {
      throw new SettingError(`--clusterAliases: expected alias=cluster, not "${entry}"`)
    }
    if ([...clusters.values()].includes(cluster)) {
      throw new SettingError(`--clusterAliases: More than one cluster alias for cluster id: ${cluster}`)
    }
    clusters.set(alias, cluster)
  }
  return clusters
}
