// The log of a process under test, to wait for what it says.
import { createLogging, type Logging } from '../../src/observability/index.ts'

export interface LogLines {
  readonly logging: Logging
  readonly lines: readonly string[]
  /** Resolves with the first line that fits, written before or after. */
  until(pattern: RegExp): Promise<string>
}

export function logLines(): LogLines {
  const lines: string[] = []
  const looks = new Set<() => void>()
  const write = (line: string): void => {
    lines.push(line)
    for (const look of [...looks]) look()
  }
  return {
    logging: createLogging({ sink: { write, dropped: 0, flush: async () => {}, flushSync() {} } }),
    lines,
    until: (pattern) =>
      new Promise((resolve) => {
        const look = (): void => {
          const found = lines.find((line) => pattern.test(line))
          if (found === undefined) return
          looks.delete(look)
          resolve(found)
        }
        looks.add(look)
        look()
      }),
  }
}
