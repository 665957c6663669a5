// `lateen apiserver` as a process of its own, for tests.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { freePort } from './free-port.ts'

const program = join(import.meta.dirname, '../../src/commands/main.ts')

export interface ApiProcess extends AsyncDisposable {
  readonly kubeconfig: string
  /** Ends the process without a chance to tidy up. */
  kill(): Promise<void>
  /** Starts it again on the same state and port. */
  start(): Promise<void>
}

export async function startApiProcess(): Promise<ApiProcess> {
  const stateDir = mkdtempSync(join(tmpdir(), 'lateen-apiserver-'))
  const port = await freePort()
  let child: ChildProcess | undefined

  async function start(): Promise<void> {
    const flags = ['--state-dir', stateDir, '--listen', `127.0.0.1:${port}`]
    const started = spawn(process.execPath, [program, 'apiserver', ...flags], { stdio: ['ignore', 'pipe', 'inherit'] })
    child = started
    for await (const line of createInterface({ input: started.stdout })) if (line.startsWith('serving ')) return
    throw new Error('the API server ended before it served')
  }

  async function end(signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    const ended = once(child, 'exit')
    child.kill(signal)
    await ended
  }

  await start()
  return {
    kubeconfig: join(stateDir, 'kubeconfig'),
    kill: () => end('SIGKILL'),
    start,
    async [Symbol.asyncDispose]() {
      await end('SIGTERM')
      rmSync(stateDir, { recursive: true })
    },
  }
}
