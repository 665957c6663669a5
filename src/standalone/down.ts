// `lateen down`: ends an instance, whether its `up` still runs or not, and removes its state.
import { existsSync, readdirSync } from 'node:fs'
import { hasRemains, removeInstance, removeState } from './clean.ts'
import { StandaloneError } from './error.ts'
import { runningUp } from './instance-lock.ts'
import { endProcess } from './node/processes.ts'
import { instancePaths } from './paths.ts'
import { systemPath } from './prerequisites.ts'
import { holdsMesh, refuseFile } from './state-directory.ts'

export interface DownOptions {
  readonly stateDir: string
  /** Keeps what the API holds for the next `up`. */
  readonly keepState: boolean
}

const upStopsMs = 60_000

/** Resolves false when there was nothing. @throws StandaloneError for a directory that is no instance's */
export async function down({ stateDir, keepState }: DownOptions): Promise<boolean> {
  process.env.PATH = systemPath(process.env.PATH)
  const paths = instancePaths(stateDir)
  await refuseFile(paths.stateDir)
  // The directory may have been deleted by hand: what it ran is found by the instance's id.
  if (!holdsMesh(paths.stateDir) && !(await hasRemains(paths))) {
    if (!existsSync(paths.stateDir) || readdirSync(paths.stateDir).length === 0) return false
    throw new StandaloneError('NO_INSTANCE', `${paths.stateDir} is not the state directory of a mesh`)
  }
  const running = await runningUp(paths.stateDir)
  if (running !== undefined) await endProcess(running, upStopsMs)
  await removeInstance(paths)
  if (!keepState) await removeState(paths)
  return true
}
