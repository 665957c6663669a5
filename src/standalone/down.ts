// `lateen down`: ends an instance, whether its `up` still runs or not, and removes its state.
import { existsSync, readdirSync } from 'node:fs'
import { hasRemains, removeInstance, removeState } from './clean.ts'
import { StandaloneError } from './error.ts'
import { runningUp } from './instance-lock.ts'
import { endProcess, waitForEnd } from './node/processes.ts'
import { instancePaths } from './paths.ts'
import { systemPath } from './prerequisites.ts'
import { holdsMesh, holdsNothingElse, refuseFile } from './state-directory.ts'

export interface DownOptions {
  readonly stateDir: string
  /** Keeps what the API holds for the next `up`. */
  readonly keepState: boolean
}

const upStopsMs = 60_000
const outerStopsMs = 10_000

/** Resolves false when there was nothing. @throws StandaloneError for a directory that is no instance's */
export async function down({ stateDir, keepState }: DownOptions): Promise<boolean> {
  process.env.PATH = systemPath(process.env.PATH)
  const paths = instancePaths(stateDir)
  await refuseFile(paths.stateDir)
  if (!(await holdsMesh(paths.stateDir))) {
    // The directory may have been deleted by hand: what it ran is found by the instance's id, and may have written into it since.
    const remains = await hasRemains(paths)
    if (!remains && (!existsSync(paths.stateDir) || readdirSync(paths.stateDir).length === 0)) return false
    if (!remains || !(await holdsNothingElse(paths.stateDir))) {
      const advice = remains
        ? ': move what it holds elsewhere, then "lateen down" ends what a mesh before it left running'
        : ''
      throw new StandaloneError('NO_INSTANCE', `${paths.stateDir} is not the state directory of a mesh${advice}`)
    }
  }
  const running = await runningUp(paths.stateDir)
  if (running !== undefined) await endProcess(running, upStopsMs)
  await removeInstance(paths)
  if (!keepState) await removeState(paths)
  if (running?.outer !== undefined) await waitForEnd(running.outer, outerStopsMs)
  return true
}
