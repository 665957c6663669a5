// One pod on this node, from its first sandbox to the deletion of its object. One pass at a time looks at what is wanted
// and what is there, and does the next steps; passes are asked for by changes of the pod, ends of processes, and timers.
import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { resources } from '../../api/index.ts'
import { readJson, writeFileAtomic } from '../files.ts'
import { hostImage, imageMessage } from './container-plan.ts'
import { ConfigError } from './environment.ts'
import type { NodeContext } from './node-context.ts'
import { PodContainer } from './pod-container.ts'
import { endPod, runHook } from './pod-end.ts'
import { removePodFiles } from './pod-files.ts'
import { watchHealth } from './pod-health.ts'
import { type PodPlace, planPodContainer, preparePod } from './pod-plan.ts'
import { PodReporter, timestamp } from './pod-report.ts'
import { createSandbox, loadSandbox, removeSandbox, type Sandbox, sandboxIsAttached } from './sandbox.ts'
import { startSandboxProcess } from './sandbox-process.ts'
import { nextSteps, type Steps } from './steps.ts'
import { containersOf, type Pod, type PodSpec } from './types.ts'

const lookAgainMs = 2000
const refreshVolumesMs = 30_000

export class PodWorker implements AsyncDisposable {
  readonly #context: NodeContext
  readonly #directory: string
  readonly #containers = new Map<string, PodContainer>()
  #pod: Pod
  #sandbox: Sandbox | undefined
  #startTime: string
  #adopted = false
  #objectGone = false
  #running: Promise<void> | undefined
  #again = false
  #timer: NodeJS.Timeout | undefined
  #closed = false
  #finished = false
  #volumes: Map<string, string> | undefined
  #volumesAtMs = 0
  #volumesDirty = false
  #sandboxFailures = 0
  readonly #toStop = new Set<string>()
  #settled = false
  readonly #ended = Promise.withResolvers<void>()
  readonly #reporter: PodReporter

  constructor(context: NodeContext, pod: Pod) {
    this.#context = context
    this.#pod = pod
    this.#reporter = new PodReporter(context)
    this.#directory = join(context.podsDirectory, pod.metadata.uid ?? '')
    this.#startTime = pod.status?.startTime ?? timestamp()
    const identity = { podUid: pod.metadata.uid ?? '', node: context.nodeName, cgroupRoot: context.cgroupRoot }
    for (const planned of containersOf(this.#spec)) {
      this.#containers.set(
        planned.container.name,
        new PodContainer(planned, this.#directory, identity, () => this.kick()),
      )
    }
  }

  get pod(): Pod {
    return this.#pod
  }

  /** Resolves when nothing of the pod is left on the node. */
  get ended(): Promise<void> {
    return this.#ended.promise
  }

  /** Resolves when the API knows what this process found of the pod. */
  get reported(): Promise<void> {
    return this.#reporter.reported
  }

  container(name: string): PodContainer | undefined {
    return this.#containers.get(name)
  }

  get containerNames(): string[] {
    return [...this.#containers.keys()]
  }

  get podIPs(): readonly string[] {
    return this.#spec.hostNetwork ? this.#context.nodeIPs : (this.#sandbox?.ips ?? [])
  }

  /** The path of the pod's network namespace; undefined when it shares the node's. */
  get networkNamespace(): string | undefined {
    return this.#sandbox?.namespacePath
  }

  /** The pod's object changed, or (undefined) is gone. */
  update(pod: Pod | undefined): void {
    if (pod === undefined) this.#objectGone = true
    else this.#pod = pod
    this.kick()
  }

  /** Asks for a pass. */
  kick(): void {
    if (this.#closed || this.#finished) return
    this.#again = true
    this.#running ??= this.#passes().finally(() => {
      this.#running = undefined
      if (this.#again) this.kick()
    })
  }

  async #passes(): Promise<void> {
    while (this.#again && !this.#closed && !this.#finished) {
      this.#again = false
      clearTimeout(this.#timer)
      let waitMs = lookAgainMs
      try {
        waitMs = await this.#pass()
      } catch (error) {
        this.#context.log(`pod ${this.#name}: ${(error as Error).message}`)
      }
      if (this.#finished || this.#closed) return
      this.#timer = setTimeout(() => this.kick(), Math.min(Math.max(waitMs, 1), lookAgainMs))
    }
  }

  async #pass(): Promise<number> {
    if (!this.#adopted) await this.#adopt()
    if (this.#objectGone || this.#pod.metadata.deletionTimestamp !== undefined) {
      await this.#finish()
      return 0
    }
    if (this.#settled || isOver(this.#pod)) {
      await this.#settle()
      this.#reporter.nothingToAdd()
      return lookAgainMs
    }
    await this.#noticeEnds()
    if (!(await this.#ensureSandbox())) {
      await this.#report(undefined)
      return Math.min(500 * 2 ** this.#sandboxFailures, 10_000)
    }
    for (const name of this.#toStop) await this.#stop(name)
    this.#toStop.clear()
    this.#noteImages()
    await this.#ensureVolumes()
    const steps = nextSteps(this.#spec, this.#planned, this.#views(), Date.now())
    for (const name of steps.stop) await this.#stop(name)
    for (const name of steps.start) await this.#start(name)
    this.#settled = steps.phase === 'Succeeded' || steps.phase === 'Failed'
    await this.#report(steps)
    if (steps.start.length > 0 || steps.stop.length > 0) this.#again = true
    for (const container of this.#containers.values()) await container.rotateLog()
    return steps.wakeAtMs === undefined ? lookAgainMs : steps.wakeAtMs - Date.now()
  }

  async #adopt(): Promise<void> {
    await mkdir(this.#directory, { recursive: true, mode: 0o755 })
    await this.#watchObjects()
    const record = await readJson<{ startTime: string }>(join(this.#directory, 'pod.json'))
    this.#startTime = record?.startTime ?? this.#startTime
    await writeFileAtomic(
      join(this.#directory, 'pod.json'),
      JSON.stringify({ startTime: this.#startTime, pod: { ...this.#pod, status: undefined } }),
      0o600,
    )
    if (!this.#spec.hostNetwork) this.#sandbox = await loadSandbox(this.#directory)
    for (const container of this.#containers.values()) {
      if (await container.adopt()) this.#watchHealth(container, container.adoptedStanding)
    }
    this.#adopted = true
  }

  async #watchObjects(): Promise<void> {
    const { uid = '', namespace = '' } = this.#pod.metadata
    await this.#context.objects.use(uid, namespace, this.#spec, () => {
      this.#volumesDirty = true
      this.kick()
    })
  }

  async #noticeEnds(): Promise<void> {
    for (const container of this.#containers.values()) {
      if (await container.noticeEnd()) container.setProber(undefined)
      else await container.noteProbes()
    }
  }

  async #ensureSandbox(): Promise<boolean> {
    if (this.#spec.hostNetwork) return true
    if (this.#sandbox !== undefined && sandboxIsAttached(this.#sandbox)) {
      await startSandboxProcess(this.#sandbox, this.#directory, this.#context.cgroupRoot, this.#context.nodeName)
      return true
    }
    try {
      if (this.#sandbox !== undefined) {
        // The namespace is gone (the machine was restarted): what ran in it is gone too.
        for (const container of this.#containers.values()) await container.running?.kill()
        await removeSandbox(this.#sandbox, this.#context.sandbox)
      }
      this.#sandbox = await createSandbox(this.#pod, this.#directory, this.#context.sandbox)
      await startSandboxProcess(this.#sandbox, this.#directory, this.#context.cgroupRoot, this.#context.nodeName)
      this.#sandboxFailures = 0
      return true
    } catch (error) {
      this.#sandbox = undefined
      this.#sandboxFailures += 1
      const message = `Failed to create pod sandbox: ${(error as Error).message}`
      this.#context.events.record(this.#pod, 'Warning', 'FailedCreatePodSandBox', message)
      this.#context.log(`pod ${this.#name}: ${message}`)
      return false
    }
  }

  #noteImages(): void {
    for (const container of this.#containers.values()) {
      const { image } = container.planned.container
      if (image === hostImage || container.waiting?.reason === 'ErrImageNeverPull') continue
      const message = imageMessage(container.planned.container)
      container.waiting = { reason: 'ErrImageNeverPull', message }
      this.#context.events.record(this.#pod, 'Warning', 'ErrImageNeverPull', message)
    }
  }

  async #ensureVolumes(): Promise<void> {
    const due = this.#volumesDirty || Date.now() - this.#volumesAtMs > refreshVolumesMs
    if (this.#volumes !== undefined && !due) return
    try {
      this.#volumesDirty = false
      this.#volumes = await preparePod(this.#context, this.#place)
      this.#volumesAtMs = Date.now()
    } catch (error) {
      // A running container keeps the volumes it has; one that starts waits for them.
      const message = `MountVolume.SetUp failed: ${(error as Error).message}`
      this.#context.events.record(this.#pod, 'Warning', 'FailedMount', message)
    }
  }

  async #start(name: string): Promise<void> {
    const container = this.#containers.get(name)
    if (container === undefined || container.waiting?.reason === 'ErrImageNeverPull') return
    const { events } = this.#context
    if (this.#volumes === undefined) {
      container.waiting = { reason: 'ContainerCreating' }
      return
    }
    try {
      const plan = await planPodContainer(this.#context, this.#place, container.planned.container, this.#volumes)
      await container.start(plan)
      events.record(this.#pod, 'Normal', 'Started', `Started container ${name}`)
    } catch (error) {
      const reason = error instanceof ConfigError ? error.code : 'RunContainerError'
      container.waiting = { reason, message: (error as Error).message }
      events.record(this.#pod, 'Warning', 'Failed', `Error: ${(error as Error).message}`)
      return
    }
    this.#watchHealth(container, undefined)
    const hook = container.planned.container.lifecycle?.postStart
    if (hook === undefined) return
    const failure = await runHook(hook, container, this.podIPs[0] ?? '127.0.0.1', 30_000)
    if (failure === undefined) return
    events.record(this.#pod, 'Warning', 'FailedPostStartHook', failure)
    await container.running?.kill()
  }

  #watchHealth(container: PodContainer, adopted: { started: boolean; ready: boolean } | undefined): void {
    const watched = watchHealth(container, this.podIPs[0] ?? '127.0.0.1', adopted, {
      record: (type, reason, message) => this.#context.events.record(this.#pod, type, reason, message),
      changed: () => this.kick(),
      stop: () => this.#stopLater(container.name),
    })
    if (watched) this.kick()
  }

  /** Within the next pass, so that no two write a container's record. */
  #stopLater(name: string): void {
    this.#toStop.add(name)
    this.kick()
  }

  async #stop(name: string): Promise<void> {
    const container = this.#containers.get(name)
    if (container === undefined) return
    container.setProber(undefined)
    const graceMs = (this.#spec.terminationGracePeriodSeconds ?? 30) * 1000
    await endPod([[container]], this.podIPs[0] ?? '127.0.0.1', Date.now() + graceMs, () => false)
  }

  /** The pod's work is over: its sandbox goes, its object and logs stay. */
  async #settle(): Promise<void> {
    this.#settled = true
    if (this.#sandbox === undefined) return
    await removeSandbox(this.#sandbox, this.#context.sandbox)
    await rm(join(this.#directory, 'sandbox.json'), { force: true })
    this.#sandbox = undefined
  }

  async #finish(): Promise<void> {
    const { name, namespace = '', uid = '', deletionGracePeriodSeconds = 30, deletionTimestamp } = this.#pod.metadata
    const graceMs = this.#objectGone ? 1000 : deletionGracePeriodSeconds * 1000
    const asked = deletionTimestamp === undefined ? Date.now() + graceMs : Date.parse(deletionTimestamp)
    const main = [...this.#containers.values()].filter((container) => container.planned.role !== 'sidecar')
    const sidecars = [...this.#containers.values()].filter((container) => container.planned.role === 'sidecar')
    for (const container of this.#containers.values()) container.setProber(undefined)
    const anyRunning = [...this.#containers.values()].some((container) => container.running !== undefined)
    if (anyRunning) this.#context.events.record(this.#pod, 'Normal', 'Killing', 'Stopping containers of the pod')
    const stages = [main, ...sidecars.reverse().map((container) => [container])]
    const deadline = Math.min(asked, Date.now() + graceMs)
    await endPod(stages, this.podIPs[0] ?? '127.0.0.1', deadline, () => this.#objectGone)
    if (!this.#objectGone) await this.#report(undefined).catch(() => undefined)
    await this.#cleanUp()
    if (!this.#objectGone) {
      await this.#context.client.delete(
        resources.pods,
        { namespace, name },
        { gracePeriodSeconds: 0, preconditions: { uid } },
      )
    }
    this.#finished = true
    this.#reporter.nothingToAdd()
    this.#ended.resolve()
  }

  async #cleanUp(): Promise<void> {
    const uid = this.#pod.metadata.uid ?? ''
    if (this.#sandbox !== undefined) {
      const failure = await removeSandbox(this.#sandbox, this.#context.sandbox)
      if (failure !== undefined) this.#context.log(`pod ${this.#name}: ${failure.message}`)
      this.#sandbox = undefined
    }
    await removePodFiles(this.#directory, this.#context.cgroupRoot, this.#context.nodeName, uid)
    for (const container of this.#containers.values()) {
      container[Symbol.dispose]()
      container.removeCgroups()
    }
    await this.#context.objects.release(uid)
    this.#context.tokens.forget(uid)
  }

  async #report(steps: Steps | undefined): Promise<void> {
    const current = steps ?? nextSteps(this.#spec, this.#planned, this.#views(), Date.now())
    await this.#reporter.report(this.#pod, current, {
      containers: this.#containers,
      backingOff: steps?.backingOff,
      sandboxReady: this.#spec.hostNetwork === true || this.#sandbox !== undefined,
      podIPs: this.podIPs,
      startTime: this.#startTime,
    })
  }

  get #place(): PodPlace {
    return { pod: this.#pod, directory: this.#directory, sandbox: this.#sandbox, podIPs: this.podIPs }
  }

  get #spec(): PodSpec {
    return this.#pod.spec ?? { containers: [] }
  }

  get #planned() {
    return [...this.#containers.values()].map((container) => container.planned)
  }

  get #name(): string {
    return `${this.#pod.metadata.namespace}/${this.#pod.metadata.name}`
  }

  #views() {
    return new Map([...this.#containers].map(([name, container]) => [name, container.view()]))
  }

  /** Stops looking after the pod; its containers go on. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true
    clearTimeout(this.#timer)
    for (const container of this.#containers.values()) container[Symbol.dispose]()
    await this.#running
  }
}

function isOver(pod: Pod): boolean {
  return pod.status?.phase === 'Succeeded' || pod.status?.phase === 'Failed'
}
