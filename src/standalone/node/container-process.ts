// A container's process. A small shell waits for it and writes down how it ended, so that this program may be
// restarted, or killed, without touching the container.
import { spawn } from 'node:child_process'
import { closeSync, existsSync, mkdirSync, openSync } from 'node:fs'
import { mkdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { readIfThere, writeFileAtomic } from '../files.ts'
import { killCgroup, processesWithEnvironment } from './cgroups.ts'
import type { ContainerPlan } from './container-plan.ts'
import { mountScript, quote } from './mounts.ts'
import { identifyProcess, isRunning, type ProcessId, signalProcess } from './processes.ts'

export interface ContainerPaths {
  /** Holds everything about one run of the container. */
  readonly directory: string
  readonly logFile: string
  readonly cgroup?: string
  /** Unique to this run; marks its processes where there are no cgroups. */
  readonly id: string
}

export interface ExitRecord {
  readonly exitCode: number
  readonly finishedAt: Date
  readonly message: string
}

/** Kept beside the run, for the next instance of this program. */
export interface RunRecord {
  readonly plan: ContainerPlan
  readonly paths: ContainerPaths
  readonly startedAt: string
}

const enterMs = 30_000

const shim = `
umask 022
( [ -z "$LATEEN_CGROUP" ] || echo 0 > "$LATEEN_CGROUP/cgroup.procs"; exec "$@" ) >> "$LATEEN_LOG" 2>&1 < /dev/null &
echo "$!" > "$LATEEN_RUN/pid.tmp" && mv "$LATEEN_RUN/pid.tmp" "$LATEEN_RUN/pid"
wait "$!"
echo "$? $(date +%s.%N)" > "$LATEEN_RUN/exit.tmp" && mv "$LATEEN_RUN/exit.tmp" "$LATEEN_RUN/exit"
`

/** The script that builds the container's view and becomes its program. */
export function entryScript(plan: ContainerPlan, root: string, enteredFile: string): string {
  const lines = [
    'set -e',
    `exec 3> ${quote(enteredFile)}`,
    `root=${quote(root)}`,
    `hostname ${quote(plan.hostname)}`,
    ...mountScript(plan.mounts),
    `cd ${quote(plan.workingDirectory)}`,
    'echo entered >&3',
    'exec 3>&-',
    `exec ${[...plan.privileges, ...environmentWords(plan), ...plan.argv].map(quote).join(' ')}`,
  ]
  return `${lines.join('\n')}\n`
}

function environmentWords(plan: ContainerPlan): string[] {
  return ['env', '-i', ...Object.entries(plan.environment).map(([name, value]) => `${name}=${value}`)]
}

/** One run of a container. */
export class ContainerProcess {
  readonly record: RunRecord
  readonly #shim: ProcessId | undefined

  private constructor(record: RunRecord, shimProcess: ProcessId | undefined) {
    this.record = record
    this.#shim = shimProcess
  }

  /** Starts the run. The directory must not hold another. */
  static async start(plan: ContainerPlan, paths: ContainerPaths): Promise<ContainerProcess> {
    await mkdir(join(paths.directory, 'root'), { recursive: true })
    if (paths.cgroup !== undefined) mkdirSync(paths.cgroup, { recursive: true })
    const marked = { ...plan, environment: { ...plan.environment, LATEEN_CONTAINER: paths.id } }
    const record: RunRecord = { plan: marked, paths, startedAt: new Date().toISOString() }
    await writeFileAtomic(join(paths.directory, 'run.json'), JSON.stringify(record), 0o600)
    const script = join(paths.directory, 'entry.sh')
    await writeFileAtomic(
      script,
      entryScript(marked, join(paths.directory, 'root'), join(paths.directory, 'entered')),
      0o700,
    )
    const enter = plan.networkNamespace === undefined ? [] : ['nsenter', `--net=${plan.networkNamespace}`, '--']
    const argv = [...enter, 'unshare', '--mount', '--uts', '--propagation', 'slave', '--', '/bin/sh', script]
    closeSync(openSync(paths.logFile, 'a', 0o640))
    const child = spawn('/bin/sh', ['-c', shim, 'lateen-shim', ...argv], {
      detached: true,
      stdio: 'ignore',
      env: {
        PATH: '/usr/sbin:/usr/bin:/sbin:/bin',
        LATEEN_CGROUP: paths.cgroup ?? '',
        LATEEN_LOG: paths.logFile,
        LATEEN_RUN: paths.directory,
        LATEEN_SHIM: paths.id,
      },
    })
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    child.once('spawn', resolve)
    child.once('error', reject)
    await promise
    child.unref()
    const id = identifyProcess(child.pid ?? 0)
    if (id !== undefined) await writeFileAtomic(join(paths.directory, 'shim.json'), JSON.stringify(id))
    const started = new ContainerProcess(record, id)
    await started.#entered()
    return started
  }

  /** The run whose files are in `directory`, running or ended; undefined when there is none that can be read. */
  static async adopt(directory: string): Promise<ContainerProcess | undefined> {
    const text = await readIfThere(join(directory, 'run.json'))
    if (text === undefined) return undefined
    const shimText = await readIfThere(join(directory, 'shim.json'))
    return new ContainerProcess(
      JSON.parse(text) as RunRecord,
      shimText === undefined ? undefined : (JSON.parse(shimText) as ProcessId),
    )
  }

  /** Resolves when the program runs with its own view of the files (or ended before): nobody may enter it earlier. */
  async #entered(): Promise<void> {
    const path = join(this.record.paths.directory, 'entered')
    const deadline = Date.now() + enterMs
    while ((await readIfThere(path)) !== 'entered\n' && (await this.exit()) === undefined) {
      if (Date.now() > deadline) {
        await this.kill()
        return
      }
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
  }

  /** The container's first process, once the shell started it. */
  async process(): Promise<ProcessId | undefined> {
    const text = await readIfThere(join(this.record.paths.directory, 'pid'))
    return text === undefined ? undefined : identifyProcess(Number(text))
  }

  /** How the run ended; undefined while it runs. */
  async exit(): Promise<ExitRecord | undefined> {
    const path = join(this.record.paths.directory, 'exit')
    let text = await readIfThere(path)
    if (text === undefined) {
      if (this.#shim !== undefined && isRunning(this.#shim)) return undefined
      if ((await this.process()) !== undefined) return undefined // the shell was killed, the container goes on
      text = (await readIfThere(path)) ?? `137 ${Date.now() / 1000}`
    }
    const [code = '137', time = '0'] = text.trim().split(' ')
    return { exitCode: Number(code), finishedAt: new Date(Number(time) * 1000), message: await this.#message() }
  }

  async signal(signal: NodeJS.Signals): Promise<boolean> {
    const id = await this.process()
    return id !== undefined && signalProcess(id, signal)
  }

  /** Ends every process of the run at once. */
  async kill(): Promise<void> {
    const { cgroup, id } = this.record.paths
    if (cgroup !== undefined && existsSync(cgroup) && killCgroup(cgroup)) return
    await this.signal('SIGKILL')
    for (const pid of await processesWithEnvironment(`LATEEN_CONTAINER=${id}`)) {
      try {
        process.kill(pid, 'SIGKILL')
      } catch {
        // gone meanwhile
      }
    }
  }

  /** Removes the run's files (not its log). */
  async remove(): Promise<void> {
    await rm(this.record.paths.directory, { recursive: true, force: true })
  }

  async #message(): Promise<string> {
    const source = this.record.plan.mounts.find((m) => m.target === this.record.plan.terminationMessagePath)?.source
    if (source === undefined) return ''
    return (await readFile(source, 'utf8').catch(() => '')).slice(0, 4096)
  }
}
