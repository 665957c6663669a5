// The state directory: made, and found fit to hold a mesh, before anything is written into it.
import { existsSync } from 'node:fs'
import { access, constants, mkdir, readdir, stat, statfs } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { StandaloneError } from './error.ts'

/** What a mesh keeps in its state directory, and `down` removes. */
export const stateEntries: readonly string[] = [
  'apiserver.db',
  'apiserver.db-shm',
  'apiserver.db-wal',
  'pki',
  'kubeconfig',
  'credentials',
  'nodes',
  'bin',
  'logs',
  'network.json',
  'port.json',
  'processes.json',
  'host-changes.json',
  'up.json',
  'progress.json',
  'api.sock',
]

/** Any of these is there from the first moment of a mesh on, or the log of an `up` in the background. */
const marks = ['network.json', 'up.json', 'apiserver.db', 'port.json']
const detachedLog = 'logs/up.log'

/** Below this the API server cannot keep its objects, nor anything its log. */
const leastFreeBytes = 32 * 1024 * 1024

export function holdsMesh(stateDir: string): boolean {
  return [...marks, detachedLog].some((name) => existsSync(join(stateDir, name)))
}

/** @throws StandaloneError when the path is there, but is no directory */
export async function refuseFile(stateDir: string): Promise<void> {
  const found = await stat(stateDir).catch((error: NodeJS.ErrnoException) => error)
  if (found instanceof Error ? found.code === 'ENOTDIR' : !found.isDirectory()) {
    throw unfit(stateDir, `${stateDir} is not a directory, or lies below a file`)
  }
}

/**
 * Makes the directory where there is none.
 * @throws StandaloneError when it cannot be made or written, when it holds files of others that `down` would take for a mesh's, or when
 * its disk is full
 */
export async function prepareStateDirectory(stateDir: string): Promise<void> {
  await refuseFile(stateDir)
  await refuseFullDisk(stateDir)
  try {
    await makeDirectory(stateDir)
    await access(stateDir, constants.W_OK)
  } catch (error) {
    throw unfit(stateDir, `${stateDir} cannot be made or written (${(error as Error).message})`, error)
  }
  // Looked at once: another `up` may be writing its first files.
  const names = await readdir(stateDir)
  if (!marks.some((mark) => names.includes(mark)) && !existsSync(join(stateDir, detachedLog))) {
    const foreign = names.filter((name) => stateEntries.includes(name))
    if (foreign.length > 0) {
      throw unfit(
        stateDir,
        `${stateDir} holds ${foreign.join(', ')}, which "lateen down" would take for a mesh's and remove`,
      )
    }
  }
}

async function refuseFullDisk(stateDir: string): Promise<void> {
  let directory = stateDir
  while (!existsSync(directory)) directory = dirname(directory)
  const { bavail, bsize, blocks } = await statfs(directory)
  // File systems that keep nothing, such as /proc, have no blocks.
  if (blocks === 0 || bavail * bsize >= leastFreeBytes) return
  const [free, least] = [bavail * bsize, leastFreeBytes].map((bytes) => Math.floor(bytes / 1024 / 1024))
  throw new StandaloneError(
    'DISK_FULL',
    `the disk is full: ${free} MB are left for ${stateDir}, and a mesh takes at least ${least} MB: make room, or give a --state-dir on another disk`,
  )
}

/** Not by the `recursive` of mkdir, which never returns where the file system makes no directories (/proc). */
async function makeDirectory(path: string): Promise<void> {
  if (existsSync(path)) return
  await makeDirectory(dirname(path))
  await mkdir(path, { mode: 0o755 })
}

function unfit(stateDir: string, what: string, cause?: unknown): StandaloneError {
  const advice = existsSync(stateDir) ? 'that is new or empty' : 'in which this user may write'
  return new StandaloneError('STATE_DIRECTORY', `${what}: give a --state-dir ${advice}`, { cause })
}
