// The plugin's log: stderr, a file that is cut off at a size, and the node agent. No sink may fail the plugin.
import { appendFileSync, existsSync, renameSync, statSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { sendLog } from './agent-client.ts'

export type PluginLevel = 'debug' | 'info' | 'warn' | 'error'

export interface PluginLog {
  readonly write: (level: PluginLevel, message: string) => void
  /** Writes out what is held back. */
  flush(): Promise<void>
}

const order: readonly string[] = ['debug', 'info', 'warn', 'error']
const maxFileBytes = 10 * 1024 * 1024

export function createPluginLog(runDir: string, level: string): PluginLog {
  const lines: string[] = []
  const threshold = Math.max(0, order.indexOf(level))
  return {
    write: (of, message) => {
      if (order.indexOf(of) < threshold) return
      const line = JSON.stringify({ level: of, time: new Date().toISOString(), msg: message })
      lines.push(line)
      attempt(() => writeSync(2, `${line}\n`))
    },
    flush: async () => {
      if (lines.length === 0) return
      attempt(() => appendToFile(join(runDir, 'istio-cni.log'), `${lines.join('\n')}\n`))
      if (existsSync(join(runDir, 'log.sock'))) await sendLog(runDir, lines)
    },
  }
}

function attempt(write: () => void): void {
  try {
    write()
  } catch {
    // A full disk or a closed stderr is no reason to keep a pod from starting.
  }
}

function appendToFile(path: string, text: string): void {
  if ((statSync(path, { throwIfNoEntry: false })?.size ?? 0) > maxFileBytes) renameSync(path, `${path}.1`)
  appendFileSync(path, text)
}
