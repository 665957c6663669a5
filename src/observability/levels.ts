// Log levels and the filters that set them by scope: `info,access=debug` (node proxy) and `default:info,grpc:none` (control plane).

export type Level = 'off' | 'error' | 'warn' | 'info' | 'debug' | 'trace'

/** Levels by scope prefix; `''` is the level of everything not named. */
export type LogFilter = ReadonlyMap<string, Level>

export class LogFilterError extends Error {
  readonly code = 'INVALID_LOG_FILTER'
}

const order: Readonly<Record<Level, number>> = { off: 0, error: 1, warn: 2, info: 3, debug: 4, trace: 5 }
const spellings: Readonly<Record<string, Level>> = { none: 'off', fatal: 'error', warning: 'warn' }

/** True when a message of this level is written by a scope set to `threshold`. */
export function isWritten(level: Exclude<Level, 'off'>, threshold: Level): boolean {
  return order[level] <= order[threshold]
}

export function parseLevel(text: string): Level | undefined {
  const word = text.trim().toLowerCase()
  if (Object.hasOwn(order, word)) return word as Level
  return Object.hasOwn(spellings, word) ? spellings[word] : undefined
}

/**
 * Parses `level` and `scope=level` entries separated by commas, each later one on top of the earlier; throws a LogFilterError that
 * names the bad entry. The prefix `ztunnel::` of a scope is optional, `ztunnel` alone means every scope.
 */
export function parseLogFilter(text: string, base: LogFilter = new Map([['', 'info']])): LogFilter {
  const filter = new Map(base)
  for (const entry of text.split(',')) {
    const equals = entry.indexOf('=')
    const level = parseLevel(equals < 0 ? entry : entry.slice(equals + 1))
    const scope = equals < 0 ? '' : entry.slice(0, equals).trim()
    if (level === undefined || (equals >= 0 && scope === '')) {
      throw new LogFilterError(`invalid log filter entry '${entry}': expected level or scope=level`)
    }
    filter.set(scope.replace(/^ztunnel(::|$)/, ''), level)
  }
  return filter
}

/**
 * Parses `level` and `scope:level` entries as the control plane's --log_output_level takes them. A level alone is that of the scope
 * `default`; the scope `all` sets every scope. Throws a LogFilterError.
 */
export function parseOutputLevels(text: string, base: LogFilter = new Map([['', 'info']])): LogFilter {
  let filter = new Map(base)
  for (const entry of text.split(',')) {
    const parts = entry.split(':')
    if (parts.length > 2) throw new LogFilterError(`invalid output level format '${entry}'`)
    const [first = '', second] = parts
    const scope = second === undefined ? 'default' : first.trim()
    const level = parseLevel(second ?? first)
    if (level === undefined) throw new LogFilterError(`invalid output level '${second ?? first}'`)
    if (scope === 'all') filter = new Map([['', level]])
    else filter.set(scope, level)
  }
  return filter
}

/** The level of a scope: that of its longest prefix in the filter. A prefix ends at a whole part of the name (`a` covers `a::b`, not `ab`). */
export function levelOf(filter: LogFilter, scope: string): Level {
  let found = filter.get('') ?? 'off'
  let length = -1
  for (const [prefix, level] of filter) {
    if (prefix.length <= length) continue
    if (scope === prefix || prefix === '' || scope.startsWith(`${prefix}::`)) {
      found = level
      length = prefix.length
    }
  }
  return found
}

/** The filter as text that parseLogFilter reads back. */
export function formatLogFilter(filter: LogFilter): string {
  const scopes = [...filter].filter(([scope]) => scope !== '').map(([scope, level]) => `${scope}=${level}`)
  const everything = filter.get('')
  return [...scopes, ...(everything === undefined ? [] : [everything])].join(',')
}
