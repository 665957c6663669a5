// Which processes belong to a container: a cgroup (version 2) for each, which also ends all of them at once.
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'

/** A place for cgroups, or undefined where this process may not make any (processes are then found by their environment). */
export function cgroupRoot(
  instance: string,
  mountinfo = readFileSync('/proc/self/mountinfo', 'utf8'),
): string | undefined {
  for (const line of mountinfo.split('\n')) {
    const [left = '', right = ''] = line.split(' - ')
    if (!right.startsWith('cgroup2 ')) continue
    const mountPoint = left.split(' ')[4] ?? ''
    const root = join(mountPoint, `lateen-${instance}`)
    try {
      // One level only: below a hidden mount, Node's recursive mkdir would try for ever.
      if (!existsSync(root)) mkdirSync(root)
      return root
    } catch {
      // Not writable (no delegation to this user): look at the next mount.
    }
  }
  return undefined
}

/** The places that hold cgroups of the instance. */
export function cgroupRoots(instance: string, mountinfo = readFileSync('/proc/self/mountinfo', 'utf8')): string[] {
  return mountinfo
    .split('\n')
    .filter((line) => line.includes(' - cgroup2 '))
    .map((line) => join(line.split(' ')[4] ?? '', `lateen-${instance}`))
    .filter((root) => existsSync(root))
}

/** The cgroup of one container; its name has the form by which node agents find a pod's processes. */
export function containerCgroup(root: string, node: string, podUid: string, container: string): string {
  return join(root, node, 'kubepods', `pod${podUid}`, container)
}

/** Ends every process of the cgroup at once. Resolves false where the kernel has no `cgroup.kill`. */
export function killCgroup(path: string): boolean {
  try {
    writeFileSync(join(path, 'cgroup.kill'), '1')
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    return false
  }
}

export function removeCgroup(path: string): void {
  try {
    rmdirSync(path)
  } catch {
    // Still populated or already gone: the next pass over the pod, or `down`, removes it.
  }
}

/** Ends and removes the cgroups below and including `root`. Resolves when they are gone or after `timeoutMs`. */
export async function clearCgroups(root: string, timeoutMs = 5000): Promise<boolean> {
  const deadline = Date.now() + timeoutMs
  killCgroup(root)
  for (;;) {
    if (await removeTree(root)) return true
    if (Date.now() > deadline) return false
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

async function removeTree(path: string): Promise<boolean> {
  let entries: { name: string; isDirectory(): boolean }[]
  try {
    entries = await readdir(path, { withFileTypes: true })
  } catch {
    return true
  }
  for (const entry of entries) if (entry.isDirectory()) await removeTree(join(path, entry.name))
  try {
    rmdirSync(path)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT'
  }
}

/** The processes whose environment has the given entry, for machines without cgroups. */
export async function processesWithEnvironment(entry: string): Promise<number[]> {
  const found: number[] = []
  for (const name of await readdir('/proc')) {
    if (!/^\d+$/.test(name)) continue
    const environment = await readFile(`/proc/${name}/environ`, 'utf8').catch(() => '')
    if (environment.split('\0').includes(entry)) found.push(Number(name))
  }
  return found
}
