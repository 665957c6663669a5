// A directory of files that changes all at once: files are links through `..data`, and `..data` is switched by one rename.
import { chmod, chown, mkdir, readdir, readFile, readlink, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'

export interface ProjectedFile {
  readonly content: Uint8Array
  readonly mode: number
  readonly owner?: { readonly uid: number; readonly gid: number }
}

/** Makes the directory hold exactly these files (keys are relative paths). Resolves false when it already did. */
export async function writeDirectory(path: string, files: ReadonlyMap<string, ProjectedFile>): Promise<boolean> {
  await mkdir(path, { recursive: true })
  const current = await readlink(join(path, '..data')).catch(() => undefined)
  if (current !== undefined && (await holds(join(path, current), files))) return false
  const generation = `..${Date.now()}.${Math.floor(Math.random() * 1e9)}`
  await mkdir(join(path, generation), { mode: 0o755 })
  for (const [name, file] of files) {
    const target = join(path, generation, name)
    await mkdir(dirname(target), { recursive: true })
    await writeFile(target, file.content)
    if (file.owner !== undefined) await chown(target, file.owner.uid, file.owner.gid)
    await chmod(target, file.mode)
  }
  await symlink(generation, join(path, '..data_tmp'))
  await rename(join(path, '..data_tmp'), join(path, '..data'))
  const visible = new Set([...files.keys()].map((name) => name.split('/')[0] ?? name))
  const entries = await readdir(path)
  for (const name of visible) if (!entries.includes(name)) await symlink(join('..data', name), join(path, name))
  for (const name of entries) {
    if (name === '..data' || name === generation || visible.has(name)) continue
    await rm(join(path, name), { recursive: true, force: true })
  }
  return true
}

async function holds(directory: string, files: ReadonlyMap<string, ProjectedFile>): Promise<boolean> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true }).catch(() => [])
  const there = entries.filter((entry) => entry.isFile()).length
  if (there !== files.size) return false
  for (const [name, file] of files) {
    const content = await readFile(join(directory, name)).catch(() => undefined)
    if (content === undefined || Buffer.compare(content, file.content) !== 0) return false
  }
  return true
}
