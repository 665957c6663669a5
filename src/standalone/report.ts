// What runs, as tables: processes, pods, and which pods are in the mesh.
import { readFileSync } from 'node:fs'
import type { KubeObject } from '../api/index.ts'
import { isRunning } from './node/processes.ts'
import type { Pod } from './node/types.ts'
import type { ProcessRecord } from './supervisor/supervisor.ts'

/** Columns padded to the widest cell, two spaces apart. */
export function formatTable(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => (row[column] ?? '').length)))
  return rows
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

export function processRows(records: readonly ProcessRecord[]): string[][] {
  const rows = records.map((record) => [
    record.name,
    String(record.pid),
    isRunning(record) ? 'running' : 'ended',
    residentMemory(record.pid),
    String(record.restarts),
  ])
  return [['PROCESS', 'PID', 'STATE', 'MEMORY', 'RESTARTS'], ...rows]
}

export function podRows(pods: readonly Pod[], namespaces: readonly KubeObject[]): string[][] {
  const ambient = new Map(
    namespaces.map(({ metadata }) => [metadata.name, metadata.labels?.['istio.io/dataplane-mode'] === 'ambient']),
  )
  const rows = [...pods]
    .sort((a, b) => (podName(a) < podName(b) ? -1 : 1))
    .map((pod) => [
      podName(pod),
      readiness(pod),
      podState(pod),
      String(pod.status?.containerStatuses?.reduce((sum, status) => sum + status.restartCount, 0) ?? 0),
      pod.status?.podIP ?? '-',
      pod.spec?.nodeName ?? '-',
      meshState(pod, ambient.get(pod.metadata.namespace ?? '') === true),
    ])
  return [['POD', 'READY', 'STATE', 'RESTARTS', 'IP', 'NODE', 'MESH'], ...rows]
}

function podName(pod: Pod): string {
  return `${pod.metadata.namespace}/${pod.metadata.name}`
}

function readiness(pod: Pod): string {
  const statuses = pod.status?.containerStatuses ?? []
  return `${statuses.filter((status) => status.ready).length}/${pod.spec?.containers.length ?? 0}`
}

function podState(pod: Pod): string {
  if (pod.metadata.deletionTimestamp !== undefined) return 'Terminating'
  const waiting = pod.status?.containerStatuses?.find((status) => status.state?.waiting)?.state?.waiting
  if (pod.status?.phase === 'Succeeded') return 'Completed'
  return waiting?.reason ?? pod.status?.phase ?? 'Pending'
}

/** Whether the pod's connections go through the node proxy. */
export function meshState(pod: Pod, namespaceIsAmbient: boolean): string {
  const { phase } = pod.status ?? {}
  if (phase === 'Succeeded' || phase === 'Failed') return '-'
  const redirection = pod.metadata.annotations?.['ambient.istio.io/redirection']
  if (redirection === 'enabled') return 'in the mesh'
  if (redirection === 'pending') return 'joining'
  const label = pod.metadata.labels?.['istio.io/dataplane-mode']
  const wanted = pod.spec?.hostNetwork !== true && label !== 'none' && (label === 'ambient' || namespaceIsAmbient)
  return wanted ? 'not yet' : '-'
}

function residentMemory(pid: number): string {
  try {
    const kilobytes = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
    return kilobytes === undefined ? '-' : `${Math.round(Number(kilobytes) / 1024)} MB`
  } catch {
    return '-'
  }
}
