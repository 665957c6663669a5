// One container of a pod over all its runs: starting, noticing the end, what was before, and its record on disk.
import { existsSync, type FSWatcher, readFileSync, watch } from 'node:fs'
import { copyFile, mkdir, rm, stat, truncate } from 'node:fs/promises'
import { join } from 'node:path'
import { readJson, writeFileAtomic } from '../files.ts'
import { containerCgroup, removeCgroup } from './cgroups.ts'
import type { ContainerPlan } from './container-plan.ts'
import { ContainerProcess } from './container-process.ts'
import { recordLogTimes } from './log-times.ts'
import type { Prober } from './prober.ts'
import type { ContainerState, Termination } from './status.ts'
import type { ContainerView } from './steps.ts'
import type { PlannedContainer } from './types.ts'

interface Record {
  readonly attempt: number
  readonly restarts: number
  readonly last?: Termination
  readonly ended?: Termination
  readonly started: boolean
  readonly ready: boolean
}

const largestLogBytes = 10 * 1024 * 1024

export class PodContainer implements Disposable {
  readonly planned: PlannedContainer
  readonly #directory: string
  readonly #identity: { readonly podUid: string; readonly node: string; readonly cgroupRoot: string | undefined }
  readonly #changed: () => void
  #record: Record = { attempt: -1, restarts: 0, started: false, ready: false }
  #process: ContainerProcess | undefined
  #watcher: FSWatcher | undefined
  #logTimes: Disposable | undefined
  #prober: Prober | undefined
  /** Why it waits, while it does. */
  waiting: { readonly reason: string; readonly message?: string } | undefined

  constructor(
    planned: PlannedContainer,
    podDirectory: string,
    identity: { readonly podUid: string; readonly node: string; readonly cgroupRoot: string | undefined },
    changed: () => void,
  ) {
    this.planned = planned
    this.#directory = join(podDirectory, 'containers', planned.container.name)
    this.#identity = identity
    this.#changed = changed
  }

  get name(): string {
    return this.planned.container.name
  }

  get running(): ContainerProcess | undefined {
    return this.#record.ended === undefined ? this.#process : undefined
  }

  get containerID(): string {
    return this.#record.attempt < 0 ? '' : `lateen://${this.#identity.podUid}-${this.name}-${this.#record.attempt}`
  }

  /** The log of the current (or last) run, or of the one before. */
  logFile(previous = false): string | undefined {
    const attempt = this.#record.attempt - (previous ? 1 : 0)
    return attempt < 0 ? undefined : join(this.#directory, `${attempt}.log`)
  }

  get startedAt(): string | undefined {
    return this.#process?.record.startedAt
  }

  /** Takes up what an earlier instance of this program left. Resolves true when the container is still running. */
  async adopt(): Promise<boolean> {
    const record = await readJson<Record>(join(this.#directory, 'state.json'))
    if (record === undefined) return false
    this.#record = record
    this.#process = await ContainerProcess.adopt(this.#runDirectory())
    if (this.#process === undefined && record.ended === undefined && record.attempt >= 0) {
      // The record was written, the run never began.
      const now = new Date().toISOString()
      this.#record = { ...record, ended: this.#termination(137, now, now, 'Error', 'never started') }
    }
    if (this.running === undefined) return false
    this.#watch()
    await this.noticeEnd()
    return this.running !== undefined
  }

  get adoptedStanding(): { started: boolean; ready: boolean } {
    return { started: this.#record.started, ready: this.#record.ready }
  }

  async start(plan: ContainerPlan): Promise<void> {
    const { attempt, ended, restarts } = this.#record
    await this.#process?.remove()
    await this.#save({
      attempt: attempt + 1,
      restarts: attempt < 0 ? 0 : restarts + 1,
      started: false,
      ready: false,
      ...(ended && { last: ended }),
    })
    await rm(join(this.#directory, `${attempt - 1}.log`), { force: true })
    for (const end of ['1', 'times']) await rm(join(this.#directory, `${attempt - 1}.log.${end}`), { force: true })
    const { podUid, node, cgroupRoot } = this.#identity
    await mkdir(this.#runDirectory(), { recursive: true })
    this.#process = await ContainerProcess.start(plan, {
      directory: this.#runDirectory(),
      logFile: join(this.#directory, `${attempt + 1}.log`),
      id: `${podUid}-${this.name}-${attempt + 1}`,
      ...(cgroupRoot && { cgroup: containerCgroup(cgroupRoot, node, podUid, this.name) }),
    })
    this.waiting = undefined
    this.#watch()
  }

  /** Looks whether the run ended, and ends what it left behind. Resolves true when that is new. */
  async noticeEnd(): Promise<boolean> {
    const process = this.running
    const exit = await process?.exit()
    if (process === undefined || exit === undefined) return false
    this.#stopWatching()
    await process.kill()
    const { exitCode } = exit
    const reason = exitCode === 0 ? 'Completed' : 'Error'
    const end = this.#termination(
      exitCode,
      process.record.startedAt,
      exit.finishedAt.toISOString(),
      reason,
      this.#lastWords(exitCode, exit.message),
    )
    await this.#save({ ...this.#record, ended: end, started: false, ready: false })
    return true
  }

  setProber(prober: Prober | undefined): void {
    this.#prober?.[Symbol.dispose]()
    this.#prober = prober
  }

  get hasProber(): boolean {
    return this.#prober !== undefined
  }

  /** Takes over the probes' standing. */
  async noteProbes(): Promise<void> {
    const started = this.running !== undefined && this.#prober?.started === true
    const ready = this.running !== undefined && this.#prober?.ready === true
    if (started !== this.#record.started || ready !== this.#record.ready)
      await this.#save({ ...this.#record, started, ready })
  }

  view(): ContainerView {
    const { ended, attempt, restarts, started } = this.#record
    if (attempt < 0) return { run: { kind: 'none' }, restarts: 0, started: false }
    if (ended === undefined) return { run: { kind: 'running' }, restarts, started }
    const run = {
      kind: 'exited' as const,
      exitCode: ended.exitCode,
      startedAtMs: Date.parse(ended.startedAt),
      finishedAtMs: Date.parse(ended.finishedAt),
    }
    return { run, restarts, started: false }
  }

  state(backingOff: boolean): ContainerState {
    const { ended, last, attempt, restarts, started, ready } = this.#record
    const { containerID } = this
    const completedInit = this.planned.role === 'init' && ended?.exitCode === 0
    const shared = { restarts, containerID, started, ready: completedInit || ready }
    if (this.waiting !== undefined && this.running === undefined) {
      const before = ended ?? last
      return { ...shared, ready: false, state: { kind: 'waiting', ...this.waiting }, ...(before && { last: before }) }
    }
    if (attempt < 0) {
      const reason = this.planned.role === 'main' ? 'ContainerCreating' : 'PodInitializing'
      return { ...shared, state: { kind: 'waiting', reason } }
    }
    if (ended === undefined) {
      const startedAt = this.#process?.record.startedAt ?? new Date().toISOString()
      return { ...shared, state: { kind: 'running', startedAt }, ...(last && { last }) }
    }
    if (backingOff) {
      const message = `back-off restarting failed container ${this.name}`
      return { ...shared, state: { kind: 'waiting', reason: 'CrashLoopBackOff', message }, last: ended }
    }
    return { ...shared, state: { kind: 'terminated', termination: ended }, ...(last && { last }) }
  }

  /** Keeps the log from filling the disk: past the limit, its content moves to `<log>.1`. */
  async rotateLog(): Promise<void> {
    const file = this.logFile()
    if (file === undefined) return
    const size = await stat(file)
      .then((s) => s.size)
      .catch(() => 0)
    if (size < largestLogBytes) return
    await copyFile(file, `${file}.1`)
    await truncate(file)
  }

  removeCgroups(): void {
    const { podUid, node, cgroupRoot } = this.#identity
    if (cgroupRoot !== undefined) removeCgroup(containerCgroup(cgroupRoot, node, podUid, this.name))
  }

  #runDirectory(): string {
    return join(this.#directory, `run-${this.#record.attempt}`)
  }

  #watch(): void {
    this.#stopWatching()
    this.#watcher = watch(this.#runDirectory(), { persistent: false }, (_, file) => {
      if (file === 'exit') this.#changed()
    })
    this.#watcher.on('error', () => this.#changed())
    const log = this.logFile()
    if (log !== undefined && existsSync(log)) this.#logTimes = recordLogTimes(log)
  }

  #stopWatching(): void {
    this.#watcher?.close()
    this.#watcher = undefined
    this.#logTimes?.[Symbol.dispose]()
    this.#logTimes = undefined
  }

  async #save(record: Record): Promise<void> {
    this.#record = record
    await writeFileAtomic(join(this.#directory, 'state.json'), JSON.stringify(record))
  }

  #termination(exitCode: number, startedAt: string, finishedAt: string, reason: string, message: string): Termination {
    return { exitCode, startedAt, finishedAt, reason, containerID: this.containerID, ...(message && { message }) }
  }

  #lastWords(exitCode: number, message: string): string {
    const file = this.logFile()
    if (message !== '' || exitCode === 0 || file === undefined) return message
    if (this.planned.container.terminationMessagePolicy !== 'FallbackToLogsOnError') return message
    return readFileSync(file, 'utf8').split('\n').slice(-80).join('\n').slice(-2048)
  }

  [Symbol.dispose](): void {
    this.#stopWatching()
    this.setProber(undefined)
  }
}
