// What pods leave on this node: which have a directory here, and the removal of one's directory, mounts and cgroups.
import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { clearCgroups } from './cgroups.ts'
import { unmountVolumes } from './volumes.ts'

/** Removes the pod's directory and cgroups; every process in them ends. */
export async function removePodFiles(
  directory: string,
  cgroupRoot: string | undefined,
  node: string,
  uid: string,
): Promise<void> {
  if (cgroupRoot !== undefined) {
    await clearCgroups(join(cgroupRoot, node, 'kubepods', `pod${uid}`))
  }
  await unmountVolumes(directory)
  await rm(directory, { recursive: true, force: true })
}

/** UIDs of the pods that have a directory here. */
export async function knownPods(podsDirectory: string): Promise<string[]> {
  return readdir(podsDirectory).catch(() => [])
}
