// Files that are either the old or the new one, never half of one.
import { randomUUID } from 'node:crypto'
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'

const mostTries = 10

/**
 * Writes by way of a temporary file and rename; makes the directories above it. Whoever removes the directory in the same moment may take
 * the temporary file along: it is then written again.
 */
export async function writeFileAtomic(path: string, content: string | Uint8Array, mode = 0o644): Promise<void> {
  for (let tries = 1; ; tries += 1) {
    const temporary = `${path}.${randomUUID()}.tmp`
    try {
      await mkdir(dirname(path), { recursive: true })
      await writeFile(temporary, content, { mode })
      await rename(temporary, path)
      return
    } catch (error) {
      await rm(temporary, { force: true })
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT' || tries === mostTries) throw error
    }
  }
}

/** The file's text, or undefined when there is none. */
export async function readIfThere(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

/** The end of a log, for an error's text; empty when there is none. */
export async function lastLines(path: string, count = 15): Promise<string> {
  const text = (await readIfThere(path)) ?? ''
  return text.trimEnd().split('\n').slice(-count).join('\n')
}

/** The parsed JSON file, or undefined when there is none or a crash left it unreadable. */
export async function readJson<T>(path: string): Promise<T | undefined> {
  const text = await readIfThere(path)
  if (text === undefined) return undefined
  try {
    return JSON.parse(text) as T
  } catch {
    return undefined
  }
}
