// Ends and removes what an instance runs and has on the host. Works on what is there, so it may run at any time and again,
// also when the state directory is gone: everything on the host has the instance's id in its name or environment.
import { existsSync } from 'node:fs'
import { readdir, readFile, rm, rmdir } from 'node:fs/promises'
import { join } from 'node:path'
import { readJson } from './files.ts'
import { type HostChanges, networkNames, removeNetwork } from './network/host.ts'
import { cgroupRoots, clearCgroups } from './node/cgroups.ts'
import { endProcess } from './node/processes.ts'
import { endMarkedProcesses, instanceMark } from './owned-processes.ts'
import type { InstancePaths } from './paths.ts'
import { tryRun } from './run.ts'
import { isStateEntry, stateMark } from './state-directory.ts'
import { recordedProcesses } from './supervisor/supervisor.ts'

/** Ends the processes that an `up` of this state directory started and did not end itself. */
export async function endLeftProcesses(paths: InstancePaths, graceMs: number): Promise<void> {
  const records = await recordedProcesses(paths.stateDir)
  for (const record of records.reverse()) await endProcess(record, graceMs)
  // What was started in the moment before a crash stands in no record.
  await endMarkedProcesses((environment) => environment.includes(instanceMark(paths.instance)))
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

/** Removes what the API holds, certificates, logs, and the mark last. Files of others in the directory stay, and so does it then. */
export async function removeState(paths: InstancePaths): Promise<void> {
  for (const name of await list(paths.stateDir)) {
    if (isStateEntry(name) && name !== stateMark) {
      await rm(join(paths.stateDir, name), { recursive: true, force: true })
    }
  }
  await rm(join(paths.stateDir, stateMark), { force: true })
  await rmdir(paths.stateDir).catch(() => undefined)
}

/** Whether anything of the instance is on the host, apart from its state directory. */
export async function hasRemains(paths: InstancePaths): Promise<boolean> {
  if (existsSync(paths.run) || cgroupRoots(paths.instance).length > 0) return true
  const { namespaces, interfaces } = await networkNames(paths.instance)
  return namespaces.length + interfaces.length > 0
}

async function endContainers(paths: InstancePaths): Promise<void> {
  const uids = new Set<string>()
  for (const node of await list(paths.nodes)) {
    for (const uid of await list(join(paths.nodes, node, 'pods'))) uids.add(uid)
  }
  for (const root of cgroupRoots(paths.instance)) await clearCgroups(root)
  // What is in no cgroup: the shells that wait for containers, and everything where there are no cgroups.
  const { namespaces } = await networkNames(paths.instance)
  await endMarkedProcesses(
    (environment) =>
      environment.some(
        (entry) => /^LATEEN_(CONTAINER|SHIM)=/.test(entry) && uids.has(entry.replace(/^[^=]*=/, '').slice(0, 36)),
      ),
    namespaces.map((name) => `/run/netns/${name}`),
  )
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
