// The columns of pods, with the status word that sums up phase, containers and deletion.
import { ageColumn, type Column, column, type Loose, nameColumn } from './column.ts'
import { age } from './duration.ts'

export const podColumns: readonly Column[] = [
  nameColumn,
  column('Ready', (pod) => `${readyContainers(pod)}/${(pod.spec?.containers ?? []).length + sidecars(pod).length}`),
  column('Status', podStatus),
  column('Restarts', restarts),
  ageColumn,
  column('IP', (pod) => pod.status?.podIP || '<none>', 1),
  column('Node', (pod) => pod.spec?.nodeName || '<none>', 1),
  column('Nominated Node', (pod) => pod.status?.nominatedNodeName || '<none>', 1),
  column('Readiness Gates', readinessGates, 1),
]

function sidecars(pod: Loose): Loose[] {
  return (pod.spec?.initContainers ?? []).filter((container: Loose) => container.restartPolicy === 'Always')
}

function countedStatuses(pod: Loose): Loose[] {
  const names = new Set(sidecars(pod).map((container) => container.name))
  const initial = (pod.status?.initContainerStatuses ?? []).filter((status: Loose) => names.has(status.name))
  return [...initial, ...(pod.status?.containerStatuses ?? [])]
}

function readyContainers(pod: Loose): number {
  return countedStatuses(pod).filter(
    (status) => status.ready === true && (status.state?.running !== undefined || status.started === true),
  ).length
}

function restarts(pod: Loose, now: Date): string {
  const statuses = countedStatuses(pod)
  const total = statuses.reduce((sum, status) => sum + (status.restartCount ?? 0), 0)
  const times = statuses
    .map((status) => status.lastState?.terminated?.finishedAt)
    .filter(Boolean)
    .sort()
  const last = times.at(-1)
  return total === 0 || last === undefined ? String(total) : `${total} (${age(last, now)} ago)`
}

function podStatus(pod: Loose): string {
  const reason = initReason(pod) ?? containersReason(pod)
  if (pod.metadata.deletionTimestamp === undefined) return reason
  if (pod.status?.reason === 'NodeLost') return 'Unknown'
  return pod.status?.phase === 'Succeeded' || pod.status?.phase === 'Failed' ? reason : 'Terminating'
}

/** `Init:1/2` and the like, while init containers are not through. */
function initReason(pod: Loose): string | undefined {
  const specs: Loose[] = pod.spec?.initContainers ?? []
  const restartable = new Set(sidecars(pod).map((container) => container.name))
  for (const [index, status] of (pod.status?.initContainerStatuses ?? []).entries()) {
    const { terminated, waiting } = status.state ?? {}
    if (terminated !== undefined && terminated.exitCode === 0) continue
    if (restartable.has(status.name) && status.started === true) continue
    if (terminated !== undefined) return `Init:${terminatedReason(terminated)}`
    if (waiting?.reason && waiting.reason !== 'PodInitializing') return `Init:${waiting.reason}`
    return `Init:${index}/${specs.length}`
  }
  return undefined
}

function containersReason(pod: Loose): string {
  let reason: string = pod.status?.reason || pod.status?.phase || 'Unknown'
  let hasRunning = false
  for (const status of (pod.status?.containerStatuses ?? []).toReversed()) {
    const { waiting, terminated, running } = status.state ?? {}
    if (waiting?.reason) reason = waiting.reason
    else if (terminated !== undefined) reason = terminatedReason(terminated)
    else if (running !== undefined && status.ready === true) hasRunning = true
  }
  if (reason !== 'Completed' || !hasRunning) return reason
  const ready = (pod.status?.conditions ?? []).some((one: Loose) => one.type === 'Ready' && one.status === 'True')
  return ready ? 'Running' : 'NotReady'
}

function terminatedReason(terminated: Loose): string {
  if (terminated.reason) return terminated.reason
  return terminated.signal ? `Signal:${terminated.signal}` : `ExitCode:${terminated.exitCode}`
}

function readinessGates(pod: Loose): string {
  const gates: Loose[] = pod.spec?.readinessGates ?? []
  if (gates.length === 0) return '<none>'
  const isTrue = (gate: Loose) =>
    (pod.status?.conditions ?? []).some((one: Loose) => one.type === gate.conditionType && one.status === 'True')
  return `${gates.filter(isTrue).length}/${gates.length}`
}
