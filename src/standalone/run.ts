// Runs a program to its end and returns what it printed.
import { spawn } from 'node:child_process'

export interface RunOptions {
  readonly input?: string
  readonly env?: NodeJS.ProcessEnv
  readonly timeoutMs?: number
  readonly signal?: AbortSignal
}

export interface RunResult {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

/** A program that could not be started or that ended with a non-zero code. */
export class RunError extends Error {
  readonly code = 'PROGRAM_FAILED'
  readonly exitCode: number
  readonly stdout: string
  constructor(argv: readonly string[], result: RunResult) {
    const why = (result.stderr || result.stdout).trim()
    super(`${argv.join(' ')} failed with code ${result.code}${why === '' ? '' : `: ${why}`}`)
    this.exitCode = result.code
    this.stdout = result.stdout
  }
}

/** Resolves with the program's code and output, whatever the code; rejects when it cannot be started. */
export function tryRun(argv: readonly string[], options: RunOptions = {}): Promise<RunResult> {
  const { promise, resolve, reject } = Promise.withResolvers<RunResult>()
  const [file = '', ...args] = argv
  const child = spawn(file, args, {
    env: options.env,
    timeout: options.timeoutMs ?? 60_000,
    killSignal: 'SIGKILL',
    signal: options.signal,
  })
  let stdout = ''
  let stderr = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text))
  child.once('error', reject)
  child.once('close', (code, signal) =>
    resolve({ code: code ?? 128, stdout, stderr: signal ? `${stderr}ended by ${signal}` : stderr }),
  )
  child.stdin.on('error', () => undefined) // the program may end before it reads its input; its code tells
  child.stdin.end(options.input ?? '')
  return promise
}

/** Resolves with what the program printed; rejects with a RunError when it fails. */
export async function run(argv: readonly string[], options: RunOptions = {}): Promise<string> {
  const result = await tryRun(argv, options)
  if (result.code !== 0) throw new RunError(argv, result)
  return result.stdout
}
