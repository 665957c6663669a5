// Ends and removes what an instance runs and has on the host. Works on what is there, so it may run at any time and again.
import { existsSync } from 'node:fs'
import { readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { readJson } from './files.ts'
import { type HostChanges, removeNetwork } from './network/host.ts'
import { cgroupRoot, clearCgroups } from './node/cgroups.ts'
import { endProcess } from './node/processes.ts'
import type { InstancePaths } from './paths.ts'
import { tryRun } from './run.ts'
import { recordedProcesses } from './supervisor/supervisor.ts'

/** Ends the processes that an `up` of this state directory started and did not end itself. */
export async function endLeftProcesses(paths: InstancePaths, graceMs: number): Promise<void> {
  const records = await recordedProcesses(paths.stateDir)
  for (const record of records.reverse()) await endProcess(record, graceMs)
  await rm(join(paths.stateDir, 'processes.json'), { force: true })
}

/** Ends all containers, and removes namespaces, interfaces, rules, mounts and run-time files. State of the API stays. */
export async function removeInstance(paths: InstancePaths): Promise<void> {
  await endLeftProcesses(paths, 10_000)
  await endContainers(paths)
  const changes = (await readJson<HostChanges>(join(paths.stateDir, 'host-changes.json'))) ?? {}
  await removeNetwork(paths.instance, changes)
  await unmountBelow(paths.stateDir)
  for (const node of await list(paths.nodes)) {
    for (const part of ['pods', 'cni']) await rm(join(paths.nodes, node, part), { recursive: true, force: true })
  }
  await rm(paths.run, { recursive: true, force: true })
  await rm(join(paths.stateDir, 'host-changes.json'), { force: true })
}

async function endContainers(paths: InstancePaths): Promise<void> {
  const uids = new Set<string>()
  for (const node of await list(paths.nodes)) {
    for (const uid of await list(join(paths.nodes, node, 'pods'))) uids.add(uid)
  }
  const root = cgroupRoot(paths.instance)
  if (root !== undefined) await clearCgroups(root)
  // What is in no cgroup: the shells that wait for containers, and everything where there are no cgroups.
  for (const name of await readdir('/proc')) {
    if (!/^\d+$/.test(name)) continue
    const environment = await readFile(`/proc/${name}/environ`, 'utf8').catch(() => '')
    const marked = environment
      .split('\0')
      .some((entry) => /^LATEEN_(CONTAINER|SHIM)=/.test(entry) && uids.has(entry.replace(/^[^=]*=/, '').slice(0, 36)))
    if (!marked) continue
    try {
      process.kill(Number(name), 'SIGKILL')
    } catch {
      // gone meanwhile
    }
  }
}

async function unmountBelow(directory: string): Promise<void> {
  const points = (await readFile('/proc/self/mountinfo', 'utf8'))
    .split('\n')
    .map((line) => (line.split(' ')[4] ?? '').replaceAll('\\040', ' '))
    .filter((point) => point.startsWith(`${directory}/`))
  for (const point of points.reverse()) await tryRun(['umount', '--lazy', point])
}

async function list(directory: string): Promise<string[]> {
  return existsSync(directory) ? readdir(directory) : []
}
