// `lateen up --detach`: the same command in the background; this process follows its progress until it runs or fails.
import { spawn } from 'node:child_process'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { StandaloneError } from './error.ts'
import { readUpRecord, runningUp } from './instance-lock.ts'
import { instancePaths, ownCommand } from './paths.ts'
import { prepareStateDirectory } from './state-directory.ts'

const lookMs = 100

export interface DetachOptions {
  readonly stateDir: string
  /** The words after `lateen up`, without `--detach`. */
  readonly words: readonly string[]
  /** Whether manifests come from standard input, which the background process gets too. */
  readonly readsInput: boolean
  readonly print: (text: string) => void
  /** Ends the background process again while it starts. */
  readonly signal: AbortSignal
}

export async function upDetached({ stateDir, words, readsInput, print, signal }: DetachOptions): Promise<void> {
  const paths = instancePaths(stateDir)
  await prepareStateDirectory(paths.stateDir)
  await mkdir(paths.logs, { recursive: true })
  const logFile = join(paths.logs, 'up.log')
  const before = await readUpRecord(paths.stateDir)
  // The log of one that runs is not ours to begin anew.
  const log = openSync(logFile, (await runningUp(paths.stateDir)) === undefined ? 'w' : 'a', 0o640)
  let printed = (await readFile(logFile, 'utf8')).length
  const [program = '', ...own] = ownCommand()
  const child = spawn(program, [...own, 'up', ...words], {
    detached: true,
    stdio: [readsInput ? 'pipe' : 'ignore', log, log],
  })
  closeSync(log)
  child.stdin?.on('error', () => undefined) // it may end before it reads; its end is told below
  if (readsInput) child.stdin?.end(readFileSync(0))
  let ended = false
  child.once('exit', () => {
    ended = true
  })
  const stop = () => child.kill('SIGTERM')
  signal.addEventListener('abort', stop, { once: true })
  for (;;) {
    const over = ended
    const text = await readFile(logFile, 'utf8').catch(() => '')
    print(text.slice(printed))
    printed = text.length
    if (over) throw new StandaloneError('UP_FAILED', `lateen up ended; see ${logFile}`)
    const record = await readUpRecord(paths.stateDir)
    // Without root the record is of a process of its own, inside.
    if (record !== undefined && record.startTicks !== before?.startTicks && record.progress === 'running') break
    await new Promise((resolve) => setTimeout(resolve, lookMs))
  }
  signal.removeEventListener('abort', stop)
  child.unref()
}
