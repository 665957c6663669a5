// A pod's status from what its containers do. Pure.
import type { Condition } from '../../api/index.ts'
import type { ContainerStatus, PlannedContainer, Pod, PodStatus } from './types.ts'

export interface Termination {
  readonly exitCode: number
  readonly startedAt: string
  readonly finishedAt: string
  readonly reason: string
  readonly message?: string
  readonly containerID: string
}

export interface ContainerState {
  readonly state:
    | { readonly kind: 'waiting'; readonly reason: string; readonly message?: string }
    | { readonly kind: 'running'; readonly startedAt: string }
    | { readonly kind: 'terminated'; readonly termination: Termination }
  readonly last?: Termination
  readonly ready: boolean
  readonly started: boolean
  readonly restarts: number
  readonly containerID: string
}

export interface PodState {
  readonly phase: NonNullable<PodStatus['phase']>
  readonly reason?: string
  readonly message?: string
  readonly initialized: boolean
  readonly sandboxReady: boolean
  readonly hostIPs: readonly string[]
  readonly podIPs: readonly string[]
  readonly startTime: string
  readonly containers: ReadonlyMap<string, ContainerState>
}

/** The status the node writes; conditions that others own are kept, transition times change only with the status. */
export function podStatus(pod: Pod, planned: readonly PlannedContainer[], state: PodState, now: string): PodStatus {
  const statuses = (main: boolean) =>
    planned
      .filter(({ role }) => (role === 'main') === main)
      .map(({ container, role }) => containerStatus(container, role, state.containers.get(container.name)))
  const containerStatuses = statuses(true)
  const initContainerStatuses = statuses(false)
  const over = state.phase === 'Succeeded' || state.phase === 'Failed'
  const counted = planned.filter(({ role }) => role !== 'init').map(({ container }) => container.name)
  const unready = counted.filter((name) => state.containers.get(name)?.ready !== true)
  const containersReady = !over && unready.length === 0
  const gates = (pod.spec?.readinessGates ?? []).map((gate) => gate.conditionType)
  const closedGates = gates.filter(
    (gate) => !pod.status?.conditions?.some((condition) => condition.type === gate && condition.status === 'True'),
  )
  const ready = containersReady && closedGates.length === 0
  const why = over
    ? { reason: 'PodCompleted' }
    : !containersReady
      ? { reason: 'ContainersNotReady', message: `containers with unready status: [${unready.join(' ')}]` }
      : {
          reason: 'ReadinessGatesNotReady',
          message: `corresponding condition of pod readiness gate is not True: ${closedGates.join(', ')}`,
        }
  const own: Condition[] = [
    condition('PodReadyToStartContainers', state.sandboxReady && !over),
    condition(
      'Initialized',
      state.initialized,
      state.initialized ? (over ? { reason: 'PodCompleted' } : {}) : { reason: 'ContainersNotInitialized' },
    ),
    condition('Ready', ready, ready ? {} : why),
    condition('ContainersReady', containersReady, containersReady ? {} : why),
  ]
  const [hostIP] = state.hostIPs
  const [podIP] = state.podIPs
  return {
    phase: state.phase,
    ...(state.reason && { reason: state.reason }),
    ...(state.message && { message: state.message }),
    conditions: mergeConditions((pod.status?.conditions ?? []) as Condition[], own, now) as NonNullable<
      PodStatus['conditions']
    >,
    ...(hostIP && { hostIP, hostIPs: state.hostIPs.map((ip) => ({ ip })) }),
    ...(podIP && { podIP, podIPs: state.podIPs.map((ip) => ({ ip })) }),
    startTime: state.startTime,
    qosClass: pod.status?.qosClass ?? 'BestEffort',
    containerStatuses,
    ...(initContainerStatuses.length > 0 && { initContainerStatuses }),
  }
}

function containerStatus(
  container: { readonly name: string; readonly image?: string },
  role: PlannedContainer['role'],
  state: ContainerState | undefined,
): ContainerStatus {
  const image = container.image ?? ''
  const base = { name: container.name, image, imageID: image === 'host' ? 'host' : '' }
  if (state === undefined) {
    const reason = role === 'main' ? 'PodInitializing' : 'ContainerCreating'
    return { ...base, ready: false, started: false, restartCount: 0, state: { waiting: { reason } } }
  }
  return {
    ...base,
    containerID: state.containerID,
    ready: state.ready,
    started: state.started,
    restartCount: state.restarts,
    state: stateOf(state.state),
    ...(state.last && { lastState: { terminated: terminated(state.last) } }),
  }
}

function stateOf(state: ContainerState['state']): NonNullable<ContainerStatus['state']> {
  switch (state.kind) {
    case 'waiting':
      return { waiting: { reason: state.reason, ...(state.message && { message: state.message }) } }
    case 'running':
      return { running: { startedAt: state.startedAt } }
    case 'terminated':
      return { terminated: terminated(state.termination) }
  }
}

function terminated(end: Termination): NonNullable<NonNullable<ContainerStatus['state']>['terminated']> {
  const { message, ...rest } = end
  return { ...rest, ...(message && { message }) }
}

function condition(type: string, holds: boolean, more: { reason?: string; message?: string } = {}): Condition {
  return { type, status: holds ? 'True' : 'False', ...more }
}

/** @returns the old conditions with ours put in; unknown types stay as they are */
export function mergeConditions(old: readonly Condition[], own: readonly Condition[], now: string): Condition[] {
  const merged = own.map((condition) => {
    const before = old.find((candidate) => candidate.type === condition.type)
    const same = before !== undefined && before.status === condition.status
    return { ...condition, lastTransitionTime: same ? (before.lastTransitionTime ?? now) : now }
  })
  const types = new Set(own.map((condition) => condition.type))
  return [...old.filter((condition) => !types.has(condition.type)), ...merged]
}
