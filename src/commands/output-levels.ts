// Log levels as control plane and node agent take them, in a setting that errors name.
import { type LogFilter, parseOutputLevels } from '../observability/index.ts'
import { UsageError } from './connection.ts'

/** @throws UsageError */
export function readOutputLevels(setting: string, text: string): LogFilter {
  try {
    return parseOutputLevels(text)
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause)
    throw new UsageError(`${setting}: ${why}, expected scope:level,… with levels none, error, warn, info or debug`, {
      cause,
    })
  }
}
