// Runs the system's network tools, in this network namespace or in another one. Never through a shell.
import { spawn } from 'node:child_process'

export interface ToolResult {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

export interface ToolOptions {
  /** File of the network namespace to run in; absent: the own one. */
  readonly netns?: string
  readonly input?: string
  readonly env?: Readonly<Record<string, string>>
}

/** Runs a tool to its end; a tool that can't be started gives code 127. */
export type RunTool = (command: string, args: readonly string[], options?: ToolOptions) => Promise<ToolResult>

export class RedirectionError extends Error {
  readonly code: 'TOOL_FAILED' | 'TOOL_MISSING' | 'NO_USABLE_IPTABLES' | 'NO_KUBELET'
  constructor(code: RedirectionError['code'], message: string) {
    super(message)
    this.name = 'RedirectionError'
    this.code = code
  }
}

const limitMs = 30_000

/** The real RunTool: a child process per call, so that the own namespace never changes. A call is cut off after 30 s. */
export const runTool: RunTool = (command, args, options = {}) =>
  new Promise((resolve) => {
    const [program, words] =
      options.netns === undefined ? [command, args] : ['nsenter', [`--net=${options.netns}`, '--', command, ...args]]
    const child = spawn(program, words, {
      env: { ...process.env, ...options.env, LC_ALL: 'C' },
      stdio: ['pipe', 'pipe', 'pipe'],
      timeout: limitMs,
      killSignal: 'SIGKILL',
    })
    const output = { stdout: '', stderr: '' }
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      output.stdout += text
    })
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      output.stderr += text
    })
    child.on('error', (error) => resolve({ code: 127, stdout: '', stderr: error.message }))
    child.on('close', (code, signal) => {
      const { stdout, stderr } = output
      // Ended from outside: by the limit, as a rule.
      if (code === null)
        resolve({ code: 1, stdout, stderr: `${stderr}ended by ${signal}, after ${limitMs} ms at most` })
      else resolve({ code, stdout, stderr })
    })
    // A tool that ends before it has read its input must not raise EPIPE here; its exit code tells.
    child.stdin.on('error', () => undefined)
    child.stdin.end(options.input ?? '')
  })

/** Runs a tool that has to succeed. */
export async function mustRun(
  run: RunTool,
  command: string,
  args: readonly string[],
  options?: ToolOptions,
): Promise<string> {
  const result = await run(command, args, options)
  if (result.code !== 0) throw failureOf(command, args, result)
  return result.stdout
}

/** The error of a call that failed. */
export function failureOf(command: string, args: readonly string[], result: ToolResult): RedirectionError {
  const missing = result.code === 127 || /nsenter: failed to execute|ENOENT/.test(result.stderr)
  return new RedirectionError(
    missing ? 'TOOL_MISSING' : 'TOOL_FAILED',
    `${command} ${args.join(' ')} failed (${result.code}): ${result.stderr.trim() || 'no message'}`,
  )
}
