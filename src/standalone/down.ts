// `lateen down`: ends an instance, whether its `up` still runs or not, and removes its state.
import { existsSync } from 'node:fs'
import { rm, rmdir } from 'node:fs/promises'
import { join } from 'node:path'
import { removeInstance } from './clean.ts'
import { StandaloneError } from './error.ts'
import { runningUp } from './instance-lock.ts'
import { endProcess } from './node/processes.ts'
import { instancePaths } from './paths.ts'
import { systemPath } from './prerequisites.ts'

export interface DownOptions {
  readonly stateDir: string
  /** Keeps what the API holds for the next `up`. */
  readonly keepState: boolean
}

const ownEntries = [
  'apiserver.db',
  'apiserver.db-shm',
  'apiserver.db-wal',
  'pki',
  'kubeconfig',
  'nodes',
  'bin',
  'logs',
  'network.json',
  'port.json',
  'processes.json',
  'host-changes.json',
  'up.json',
  'api.sock',
]

const upStopsMs = 60_000

/** Resolves false when there was nothing. @throws StandaloneError for a directory that is no instance's */
export async function down({ stateDir, keepState }: DownOptions): Promise<boolean> {
  process.env.PATH = systemPath(process.env.PATH)
  const paths = instancePaths(stateDir)
  if (!existsSync(paths.stateDir)) return false
  if (!['network.json', 'up.json', 'apiserver.db'].some((name) => existsSync(join(paths.stateDir, name)))) {
    throw new StandaloneError('NO_INSTANCE', `${paths.stateDir} is not the state directory of a mesh`)
  }
  const running = await runningUp(paths.stateDir)
  if (running !== undefined) await endProcess(running, upStopsMs)
  await removeInstance(paths)
  if (!keepState) {
    for (const name of ownEntries) await rm(join(paths.stateDir, name), { recursive: true, force: true })
    await rmdir(paths.stateDir).catch(() => undefined) // other files in it stay
  }
  return true
}
