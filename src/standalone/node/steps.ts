// What to do next with a pod's containers, and the phase that follows from what they did. Pure.
import type { PlannedContainer, PodSpec } from './types.ts'

export interface ContainerView {
  readonly run:
    | { readonly kind: 'none' }
    | { readonly kind: 'running' }
    | {
        readonly kind: 'exited'
        readonly exitCode: number
        readonly finishedAtMs: number
        readonly startedAtMs: number
      }
  readonly restarts: number
  /** The start-up probe succeeded, or there is none. */
  readonly started: boolean
}

export interface Steps {
  readonly start: readonly string[]
  readonly stop: readonly string[]
  /** When to look again although nothing happened. */
  readonly wakeAtMs?: number
  readonly initialized: boolean
  readonly phase: 'Pending' | 'Running' | 'Succeeded' | 'Failed'
  /** Containers that wait for the end of their back-off. */
  readonly backingOff: ReadonlySet<string>
}

const firstDelayMs = 1000
const longestDelayMs = 60_000
const forgivenAfterMs = 600_000

/**
 * How long a container that ended waits before it is started again: not at all after its first run, then 1 s,
 * doubling to a minute; a run of ten minutes starts the count anew (`restarts` counts since then).
 */
export function restartDelayMs(restarts: number): number {
  return restarts === 0 ? 0 : Math.min(firstDelayMs * 2 ** (restarts - 1), longestDelayMs)
}

/** The count of restarts that the next delay is computed from. */
export function countedRestarts(restarts: number, lastRunMs: number): number {
  return lastRunMs >= forgivenAfterMs ? 0 : restarts
}

export function nextSteps(
  spec: PodSpec,
  containers: readonly PlannedContainer[],
  views: ReadonlyMap<string, ContainerView>,
  nowMs: number,
): Steps {
  const policy = spec.restartPolicy ?? 'Always'
  const start: string[] = []
  const backingOff = new Set<string>()
  let wakeAtMs: number | undefined
  const viewOf = (name: string): ContainerView =>
    views.get(name) ?? { run: { kind: 'none' }, restarts: 0, started: false }
  const mains = containers.filter(({ role }) => role === 'main').map(({ container }) => container.name)
  const mainsBegan = mains.some((name) => viewOf(name).run.kind !== 'none')

  const startAgain = (name: string, view: ContainerView) => {
    if (view.run.kind !== 'exited') return
    const counted = countedRestarts(view.restarts, view.run.finishedAtMs - view.run.startedAtMs)
    const at = view.run.finishedAtMs + restartDelayMs(counted)
    if (at <= nowMs) start.push(name)
    else {
      backingOff.add(name)
      wakeAtMs = Math.min(wakeAtMs ?? at, at)
    }
  }

  let initialized = true
  let initFailed = false
  for (const { role, container } of containers) {
    if (role === 'main') break
    const view = viewOf(container.name)
    const blocks = role === 'init' ? !exitedWith(view, 0) : !(view.run.kind === 'running' && view.started)
    if (role === 'init' && mainsBegan) continue
    if (view.run.kind === 'none') start.push(container.name)
    else if (role === 'sidecar') startAgain(container.name, view)
    else if (view.run.kind === 'exited' && view.run.exitCode !== 0) {
      if (policy === 'Never') initFailed = true
      else startAgain(container.name, view)
    }
    if (blocks && !mainsBegan) {
      initialized = false
      break
    }
  }

  const finished = (view: ContainerView) =>
    view.run.kind === 'exited' && (policy === 'Never' || (policy === 'OnFailure' && view.run.exitCode === 0))
  if (initialized) {
    for (const name of mains) {
      const view = viewOf(name)
      if (view.run.kind === 'none') start.push(name)
      else if (!finished(view)) startAgain(name, view)
    }
  }

  const allFinished = initFailed || (mains.length > 0 && mains.every((name) => finished(viewOf(name))))
  const sidecars = containers.filter(({ role }) => role === 'sidecar').map(({ container }) => container.name)
  if (allFinished) {
    const running = sidecars.filter((name) => viewOf(name).run.kind === 'running')
    const failed = initFailed || mains.some((name) => !exitedWith(viewOf(name), 0))
    const phase = running.length > 0 ? (initFailed ? 'Pending' : 'Running') : failed ? 'Failed' : 'Succeeded'
    return { start: [], stop: running.reverse(), initialized, phase, backingOff: new Set() }
  }
  const phase = mains.every((name) => viewOf(name).run.kind !== 'none') ? 'Running' : 'Pending'
  return { start, stop: [], initialized, phase, backingOff, ...(wakeAtMs === undefined ? {} : { wakeAtMs }) }
}

function exitedWith(view: ContainerView, code: number): boolean {
  return view.run.kind === 'exited' && view.run.exitCode === code
}
