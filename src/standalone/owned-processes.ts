// The processes of an instance by what the kernel knows of them, for when no record does.
import { statSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'

/** The environment entry of every process that `up` starts. */
export function instanceMark(instance: string): string {
  return `LATEEN_INSTANCE=${instance}`
}

/** Ends at once the processes whose environment is as asked, and those in one of the network namespaces. */
export async function endMarkedProcesses(
  isMarked: (environment: readonly string[]) => boolean,
  namespacePaths: readonly string[] = [],
): Promise<void> {
  const namespaces = new Set(namespacePaths.map(inode).filter((number) => number !== undefined))
  for (const name of await readdir('/proc')) {
    if (!/^\d+$/.test(name) || Number(name) === process.pid) continue
    const inside = namespaces.size > 0 && namespaces.has(inode(`/proc/${name}/ns/net`) ?? -1n)
    const environment = inside ? '' : await readFile(`/proc/${name}/environ`, 'utf8').catch(() => '')
    if (!inside && !isMarked(environment.split('\0'))) continue
    try {
      process.kill(Number(name), 'SIGKILL')
    } catch {
      // gone meanwhile
    }
  }
}

function inode(path: string): bigint | undefined {
  try {
    return statSync(path, { bigint: true }).ino
  } catch {
    return undefined
  }
}
