// Log scopes: named sources of messages whose levels can be changed while the process runs.
import { type Fields, type FormatRecord, formatJson, formatPlain } from './format.ts'
import { formatLogFilter, isWritten, type Level, type LogFilter, levelOf, parseLogFilter } from './levels.ts'
import { createFdSink, type LogSink } from './sink.ts'
import { createThreadLogLink, type ThreadLogLink } from './thread-log-link.ts'
import type { ThreadLogStart } from './thread-logging.ts'

type WrittenLevel = Exclude<Level, 'off'>

export interface Scope {
  readonly name: string
  readonly level: Level
  /** True when a message of this level would be written: ask before computing costly fields. */
  writes(level: WrittenLevel): boolean
  log(level: WrittenLevel, message: string, fields?: Fields): void
  error(message: string, fields?: Fields): void
  warn(message: string, fields?: Fields): void
  info(message: string, fields?: Fields): void
  debug(message: string, fields?: Fields): void
  trace(message: string, fields?: Fields): void
}

export interface Logging {
  /** The scope of this name; the same one each time. */
  scope(name: string, description?: string): Scope
  readonly filter: LogFilter
  /** Sets the levels of every scope, present and future. */
  setFilter(filter: LogFilter): void
  /** Adds entries (`level` or `scope=level,…`) to the filter in force. Throws a LogFilterError. */
  addToFilter(entries: string): void
  /** Back to the filter the process started with. */
  resetFilter(): void
  /** The filter in force as text. */
  filterText(): string
  /**
   * Takes up what a worker logs and writes it among its own lines; levels set here apply there. Ends by itself with the thread, or when closed.
   * `worker` names the thread in the line that tells of lost lines; `size` is how many bytes of lines may wait, a power of two.
   */
  addThread(worker: string, size?: number): ThreadLog
  scopes(): readonly { readonly name: string; readonly description: string; readonly level: Level }[]
  /** Lines lost so far, those of threads included. */
  readonly dropped: number
  flush(): Promise<void>
  /** Writes what waits at once, that of threads included, for the last words of a process. */
  flushSync(): void
}

export interface ThreadLog {
  /** What the worker gives to `createThreadLogging`. */
  readonly start: ThreadLogStart
  close(): void
}

export interface LoggingOptions {
  readonly sink?: LogSink
  readonly format?: FormatRecord
  readonly filter?: LogFilter
  readonly now?: () => Date
}

/** Logging of one process; by default text on standard output at level info. */
export function createLogging(options: LoggingOptions = {}): Logging {
  const { format = formatPlain, now = () => new Date() } = options
  const dropReport = (count: number) =>
    format({ time: now(), level: 'warn', scope: 'log', message: 'log lines dropped', fields: { count } })
  const sink = options.sink ?? createFdSink({ fd: 1, dropReport })
  const initial: LogFilter = options.filter ?? new Map([['', 'info']])
  let filter = initial
  const scopes = new Map<string, Scope & { setLevel(level: Level): void; readonly description: string }>()

  const threads = new Set<ThreadLogLink>()
  let droppedByEnded = 0

  function createScope(name: string, description: string) {
    let threshold = levelOf(filter, name)
    const log = (level: WrittenLevel, message: string, fields?: Fields): void => {
      if (isWritten(level, threshold)) sink.write(format({ time: now(), level, scope: name, message, fields }))
    }
    return {
      name,
      description,
      get level() {
        return threshold
      },
      setLevel(level: Level) {
        threshold = level
      },
      writes: (level: WrittenLevel) => isWritten(level, threshold),
      log,
      error: (message: string, fields?: Fields) => log('error', message, fields),
      warn: (message: string, fields?: Fields) => log('warn', message, fields),
      info: (message: string, fields?: Fields) => log('info', message, fields),
      debug: (message: string, fields?: Fields) => log('debug', message, fields),
      trace: (message: string, fields?: Fields) => log('trace', message, fields),
    }
  }

  function setFilter(next: LogFilter): void {
    filter = next
    for (const scope of scopes.values()) scope.setLevel(levelOf(filter, scope.name))
    for (const link of threads) link.setFilter(filter)
  }

  function addThread(worker: string, size?: number): ThreadLog {
    const link = createThreadLogLink({
      sink,
      filter,
      ...(size === undefined ? {} : { size }),
      dropReport: (count) =>
        format({ time: now(), level: 'warn', scope: 'log', message: 'log lines dropped', fields: { worker, count } }),
      onEnd() {
        droppedByEnded += link.dropped
        threads.delete(link)
      },
    })
    threads.add(link)
    return link
  }

  return {
    scope(name, description = '') {
      const known = scopes.get(name)
      if (known !== undefined) return known
      const scope = createScope(name, description)
      scopes.set(name, scope)
      return scope
    },
    get filter() {
      return filter
    },
    setFilter,
    addThread,
    addToFilter: (entries) => setFilter(parseLogFilter(entries, filter)),
    resetFilter: () => setFilter(initial),
    filterText: () => formatLogFilter(filter),
    scopes: () =>
      [...scopes.values()]
        .map(({ name, description, level }) => ({ name, description, level }))
        .sort((a, b) => (a.name < b.name ? -1 : 1)),
    get dropped() {
      let dropped = sink.dropped + droppedByEnded
      for (const link of threads) dropped += link.dropped
      return dropped
    },
    flush() {
      for (const link of threads) link.drain()
      return sink.flush()
    },
    flushSync() {
      for (const link of threads) link.drain()
      sink.flushSync()
    },
  }
}

/** A logging that writes nothing, for libraries whose caller gave none. */
export function silentLogging(): Logging {
  const nothing: LogSink = { write: () => {}, dropped: 0, flush: async () => {}, flushSync: () => {} }
  return createLogging({ sink: nothing, format: formatJson('msg'), filter: new Map([['', 'off']]) })
}
