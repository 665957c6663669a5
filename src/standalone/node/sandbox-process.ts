// The process that holds a pod's network namespace: by it, a node agent finds the namespace of a pod that runs already.
import { spawn } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { readJson, writeFileAtomic } from '../files.ts'
import { containerCgroup } from './cgroups.ts'
import { identifyProcess, isRunning, type ProcessId } from './processes.ts'
import type { Sandbox } from './sandbox.ts'

/** Starts the process unless it runs. */
export async function startSandboxProcess(
  sandbox: Sandbox,
  directory: string,
  cgroupRoot: string | undefined,
  node: string,
): Promise<void> {
  const file = join(directory, 'sandbox-process.json')
  const before = await readJson<ProcessId>(file)
  if (before !== undefined && isRunning(before)) return
  const cgroup = cgroupRoot && containerCgroup(cgroupRoot, node, sandbox.id, 'sandbox')
  if (cgroup) mkdirSync(cgroup, { recursive: true })
  const script =
    '[ -z "$LATEEN_CGROUP" ] || echo 0 > "$LATEEN_CGROUP/cgroup.procs"; exec nsenter --net="$1" sleep infinity'
  const child = spawn('/bin/sh', ['-c', script, 'lateen-sandbox', sandbox.namespacePath], {
    detached: true,
    stdio: 'ignore',
    env: {
      PATH: '/usr/sbin:/usr/bin:/sbin:/bin',
      LATEEN_CGROUP: cgroup ?? '',
      LATEEN_CONTAINER: `${sandbox.id}-sandbox`,
    },
  })
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  child.once('spawn', resolve)
  child.once('error', reject)
  await promise
  child.unref()
  const id = identifyProcess(child.pid ?? 0)
  if (id !== undefined) await writeFileAtomic(file, JSON.stringify(id))
}
