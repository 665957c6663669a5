// A file whose content is replaced while we run (projected tokens, CA bundles).
import { readFileSync } from 'node:fs'

const freshMs = 10_000

/**
 * A function that gives the file's text, read again when the last reading is older than ten seconds or when `now` is true.
 * A file that vanished for a moment (an atomic replacement under way) leaves the last text in force; it throws only if there is none yet.
 */
export function reread(path: string): (now?: boolean) => string {
  let text: string | undefined
  let readAt = 0
  return (now = false) => {
    if (text !== undefined && !now && Date.now() - readAt < freshMs) return text
    try {
      text = readFileSync(path, 'utf8')
      readAt = Date.now()
    } catch (cause) {
      if (text === undefined) throw new Error(`cannot read ${path}`, { cause })
    }
    return text
  }
}
