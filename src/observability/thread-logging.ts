// Logging of a worker thread: lines are formatted here, and written by the main thread out of shared memory.
import type { MessagePort } from 'node:worker_threads'
import type { FormatRecord } from './format.ts'
import type { LogFilter } from './levels.ts'
import { type LineRingMemory, writeLines } from './line-ring.ts'
import { createLogging, type Logging } from './logging.ts'
import type { LogSink } from './sink.ts'

/** What a worker needs to log: it may be sent to the worker, with the port in its transfer list. */
export interface ThreadLogStart {
  readonly port: MessagePort
  readonly memory: LineRingMemory
  /** The levels in force when the worker was made; changes follow through the port. */
  readonly filter: LogFilter
}

export interface ThreadLoggingOptions {
  readonly format?: FormatRecord
  readonly now?: () => Date
}

/**
 * Logging that never waits: lines beyond what the memory holds are dropped and counted. A line taken is no longer this thread's: it is written
 * however the thread ends. Levels follow those of the main thread.
 */
export function createThreadLogging(start: ThreadLogStart, options: ThreadLoggingOptions = {}): Logging {
  const { port, memory, filter } = start
  const writer = writeLines(memory)
  const sink: LogSink = {
    write(text, lines = 1) {
      if (writer.write(text, lines)) port.postMessage(undefined)
    },
    get dropped() {
      return writer.dropped
    },
    flush: async () => undefined,
    flushSync: () => undefined,
  }
  const logging = createLogging({ ...options, sink, filter })
  port.on('message', (next: LogFilter) => logging.setFilter(next))
  port.unref()
  return logging
}
