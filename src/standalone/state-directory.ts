// The state directory: made, and found fit to hold a mesh, before anything is written into it.
import { existsSync } from 'node:fs'
import { access, constants, mkdir, readdir, stat, statfs, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { StandaloneError } from './error.ts'
import { readJson } from './files.ts'

/** Is there before anything else of a mesh, and removed last: it alone makes a directory a mesh's. */
export const stateMark = '.lateen-mesh'
const markText = 'The state of a Lateen mesh is in this directory: "lateen down" removes it.\n'

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
  stateMark,
]

/** Below this the API server cannot keep its objects, nor anything its log. */
const leastFreeBytes = 32 * 1024 * 1024

/** Whether the directory is a mesh's: by its mark, or by the records of a version that made none. */
export async function holdsMesh(stateDir: string): Promise<boolean> {
  return existsSync(join(stateDir, stateMark)) || (await holdsUnmarkedMesh(stateDir))
}

/** By what the records say: others have files of these names, too. */
async function holdsUnmarkedMesh(stateDir: string): Promise<boolean> {
  const [up, network] = await Promise.all(['up.json', 'network.json'].map((name) => readRecord(join(stateDir, name))))
  const { pid, startTicks } = up ?? {}
  const { instance, bridge, clusterCidr, serviceCidr } = network ?? {}
  return (
    (typeof pid === 'number' && typeof startTicks === 'string') ||
    [instance, bridge, clusterCidr, serviceCidr].every((part) => typeof part === 'string')
  )
}

async function readRecord(path: string): Promise<Readonly<Record<string, unknown>> | undefined> {
  const found = await readJson<unknown>(path).catch((error: NodeJS.ErrnoException) => {
    // A directory, or a file that this user may not read, is no record of a mesh of theirs.
    if (error.code === 'EISDIR' || error.code === 'EACCES') return undefined
    throw error
  })
  return typeof found === 'object' && found !== null ? { ...found } : undefined
}

/** Whether everything in the directory could be a mesh's; true where there is none. */
export async function holdsNothingElse(stateDir: string): Promise<boolean> {
  return !existsSync(stateDir) || (await readdir(stateDir)).every(isStateEntry)
}

/** Whether it is the name of what a mesh keeps, or of the temporary file by which that is written. */
export function isStateEntry(name: string): boolean {
  return stateEntries.some((entry) => name === entry || (name.startsWith(`${entry}.`) && name.endsWith('.tmp')))
}

/** @throws StandaloneError when the path is there, but is no directory */
export async function refuseFile(stateDir: string): Promise<void> {
  const found = await stat(stateDir).catch((error: NodeJS.ErrnoException) => error)
  if (found instanceof Error ? found.code === 'ENOTDIR' : !found.isDirectory()) {
    throw unfit(stateDir, `${stateDir} is not a directory, or lies below a file`)
  }
}

/**
 * Makes the directory where there is none, and marks it as a mesh's.
 * @throws StandaloneError when it cannot be made or written, when it holds files of others that `down` would take for a mesh's, or when
 * its disk is full
 */
export async function prepareStateDirectory(stateDir: string): Promise<void> {
  await refuseFile(stateDir)
  await refuseFullDisk(stateDir)
  const cannotBeWritten = (error: Error): never => {
    throw unfit(stateDir, `${stateDir} cannot be made or written (${error.message})`, error)
  }
  await makeDirectory(stateDir)
    .then(() => access(stateDir, constants.W_OK))
    .catch(cannotBeWritten)
  const foreign = (await readdir(stateDir)).filter(isStateEntry)
  // Another `up` may be writing its first files: after its mark, which is looked for after they are.
  if (foreign.length > 0 && !(await holdsMesh(stateDir))) {
    throw unfit(
      stateDir,
      `${stateDir} holds ${foreign.join(', ')}, which "lateen down" would take for a mesh's and remove`,
    )
  }
  await mark(stateDir).catch(cannotBeWritten)
}

async function mark(stateDir: string): Promise<void> {
  await writeFile(join(stateDir, stateMark), markText, { flag: 'wx', mode: 0o644 }).catch(unlessThere)
}

/** Another `up` may have made it meanwhile. */
function unlessThere(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EEXIST') throw error
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
  await mkdir(path, { mode: 0o755 }).catch(unlessThere)
}

function unfit(stateDir: string, what: string, cause?: unknown): StandaloneError {
  const advice = existsSync(stateDir) ? 'that is new or empty' : 'in which this user may write'
  return new StandaloneError('STATE_DIRECTORY', `${what}: give a --state-dir ${advice}`, { cause })
}
