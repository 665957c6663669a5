// `lateen status`: what an instance runs, from its records and its API.
import { existsSync } from 'node:fs'
import { resources } from '../api/index.ts'
import { createKubeClient } from '../kube/index.ts'
import { readUpRecord } from './instance-lock.ts'
import { isRunning } from './node/processes.ts'
import type { Pod } from './node/types.ts'
import { instancePaths } from './paths.ts'
import { formatTable, podRows, processRows } from './report.ts'
import { refuseFile } from './state-directory.ts'
import { recordedProcesses } from './supervisor/supervisor.ts'
import { typedCommand } from './typed-command.ts'

export interface StatusReport {
  readonly text: string
  /** Whether everything runs. */
  readonly healthy: boolean
}

export async function status(stateDir: string): Promise<StatusReport> {
  const paths = instancePaths(stateDir)
  await refuseFile(paths.stateDir)
  const up = await readUpRecord(paths.stateDir)
  if (up === undefined || !existsSync(paths.kubeconfig)) {
    return {
      text: `No mesh runs with the state directory ${paths.stateDir}: start one with "${typedCommand(paths.stateDir, 'up')}".`,
      healthy: false,
    }
  }
  const supervised = isRunning(up)
  const records = await recordedProcesses(paths.stateDir)
  const first = supervised
    ? `lateen up (process ${up.pid}): ${up.progress}${up.message ? `: ${up.message}` : ''}`
    : `lateen up is not running${up.message ? ` (${up.message})` : ''}: nothing restarts what ends. "${typedCommand(paths.stateDir, 'up')}" takes over, "${typedCommand(paths.stateDir, 'down')}" cleans up.`
  if (!supervised && records.length === 0) {
    const why = up.message ? `failed: ${up.message}` : 'stopped'
    const text = `The mesh of ${paths.stateDir} ${why}. "${typedCommand(paths.stateDir, 'up')}" starts it again with what its API holds, "${typedCommand(paths.stateDir, 'down')}" removes it.`
    return { text, healthy: false }
  }
  const parts = [first, formatTable(processRows(records))]
  const allRun = records.length > 0 && records.every(isRunning)
  let reached = false
  try {
    const client = await createKubeClient({ kubeconfig: paths.kubeconfig })
    try {
      const [pods, namespaces] = await Promise.all([
        client.list<Pod>(resources.pods),
        client.list(resources.namespaces),
      ])
      parts.push(formatTable(podRows(pods.items, namespaces.items)))
      reached = true
    } finally {
      await client.close()
    }
  } catch (error) {
    parts.push(`The API server does not answer: ${(error as Error).message}`)
  }
  return { text: parts.join('\n\n'), healthy: supervised && allRun && reached }
}
