// What a failed system call throws.
import { constants } from 'node:os'

/** Some numbers have two names; Node's own errors use the first of these. */
const aliases = new Set(['EWOULDBLOCK', 'EOPNOTSUPP'])
const names = new Map(
  Object.entries(constants.errno)
    .filter(([name]) => !aliases.has(name))
    .map(([name, value]) => [value, name]),
)

/** A system call that failed; `code` is the errno's name, as in Node's own errors. */
export class LinuxError extends Error {
  readonly code: string
  readonly syscall: string

  constructor(syscall: string, code: string, detail?: string) {
    super(`${syscall}: ${code}${detail === undefined ? '' : ` (${detail})`}`)
    this.name = 'LinuxError'
    this.code = code
    this.syscall = syscall
  }
}

export function errnoName(errno: number): string {
  return names.get(errno) ?? `errno ${errno}`
}
