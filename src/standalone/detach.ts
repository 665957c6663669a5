// `lateen up --detach`: the same command in the background; this process follows its progress until it runs or fails.
import { spawn } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { StandaloneError } from './error.ts'
import { readUpRecord } from './instance-lock.ts'
import { instancePaths, ownCommand } from './paths.ts'

const lookMs = 100

/** @param words the words after `lateen up`, without `--detach` */
export async function upDetached(
  stateDir: string,
  words: readonly string[],
  print: (text: string) => void,
): Promise<void> {
  const paths = instancePaths(stateDir)
  await mkdir(paths.logs, { recursive: true })
  const logFile = join(paths.logs, 'up.log')
  const before = await readUpRecord(paths.stateDir)
  const log = openSync(logFile, 'w', 0o640)
  const [program = '', ...own] = ownCommand()
  const child = spawn(program, [...own, 'up', ...words], { detached: true, stdio: ['ignore', log, log] })
  closeSync(log)
  let ended = false
  child.once('exit', () => {
    ended = true
  })
  let printed = 0
  for (;;) {
    const text = await readFile(logFile, 'utf8').catch(() => '')
    print(text.slice(printed))
    printed = text.length
    if (ended) throw new StandaloneError('UP_FAILED', `lateen up ended; see ${logFile}`)
    const record = await readUpRecord(paths.stateDir)
    // Without root the record is of a process of its own, inside.
    if (record !== undefined && record.startTicks !== before?.startTicks && record.progress === 'running') break
    await new Promise((resolve) => setTimeout(resolve, lookMs))
  }
  child.unref()
}
