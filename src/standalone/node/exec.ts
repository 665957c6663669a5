// Runs a further command inside a running container.
import { type ChildProcess, spawn } from 'node:child_process'
import type { ContainerProcess } from './container-process.ts'
import { quote } from './mounts.ts'

export interface ExecOptions {
  readonly argv: readonly string[]
  /** Gives the command a terminal. */
  readonly tty?: boolean
}

/** No container process to enter. */
export class NotRunningError extends Error {
  readonly code = 'CONTAINER_NOT_RUNNING'
}

/** Starts the command with the container's network, files, host name, environment, rights and cgroup. The caller owns the child. */
export async function execInContainer(container: ContainerProcess, options: ExecOptions): Promise<ChildProcess> {
  const target = await container.process()
  if (target === undefined) throw new NotRunningError('the container is not running')
  const { plan, paths } = container.record
  const environment = { ...plan.environment, ...(options.tty ? { TERM: 'xterm' } : {}) }
  const inner = [
    ...plan.privileges,
    'env',
    '-i',
    '-C',
    plan.workingDirectory,
    ...Object.entries(environment).map(([name, value]) => `${name}=${value}`),
    ...(options.tty
      ? ['script', '--quiet', '--return', '--command', options.argv.map(quote).join(' '), '/dev/null']
      : options.argv),
  ]
  const join = '[ -z "$LATEEN_CGROUP" ] || echo 0 > "$LATEEN_CGROUP/cgroup.procs"; exec "$@"'
  const enter = ['nsenter', `--target=${target.pid}`, '--mount', '--net', '--uts', '--root', '--', ...inner]
  const child = spawn('/bin/sh', ['-c', join, 'lateen-exec', ...enter], {
    detached: true,
    stdio: ['pipe', 'pipe', 'pipe'],
    env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', LATEEN_CGROUP: paths.cgroup ?? '' },
  })
  child.on('error', () => undefined) // reported by 'close' as well, with a code
  return child
}

/** Runs the command to its end. */
export async function execAndWait(
  container: ContainerProcess,
  argv: readonly string[],
  timeoutMs: number,
): Promise<{ code: number; output: string }> {
  const child = await execInContainer(container, { argv })
  const { promise, resolve } = Promise.withResolvers<{ code: number; output: string }>()
  let output = ''
  const take = (text: string) => {
    if (output.length < 10_240) output += text
  }
  child.stdout?.setEncoding('utf8').on('data', take)
  child.stderr?.setEncoding('utf8').on('data', take)
  child.stdin?.end()
  const timer = setTimeout(() => {
    endGroup(child)
    resolve({ code: 124, output: `command timed out after ${timeoutMs} ms` })
  }, timeoutMs)
  child.once('close', (code) => resolve({ code: code ?? 137, output }))
  child.once('error', (error) => resolve({ code: 126, output: error.message }))
  try {
    return await promise
  } finally {
    clearTimeout(timer)
  }
}

/** Ends the command and what it started. */
export function endGroup(child: ChildProcess): void {
  if (child.pid === undefined || child.exitCode !== null) return
  try {
    process.kill(-child.pid, 'SIGKILL')
  } catch {
    child.kill('SIGKILL')
  }
}
