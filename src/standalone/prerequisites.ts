// The programs of the host that the node runtime calls, and where they come from.
import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'
import { StandaloneError } from './error.ts'
import { tryRun } from './run.ts'

interface Requirement {
  readonly program: string
  readonly debianPackage: string
}

const required: readonly Requirement[] = [
  { program: 'ip', debianPackage: 'iproute2' },
  { program: 'nft', debianPackage: 'nftables' },
  { program: 'iptables', debianPackage: 'iptables' },
  { program: 'ipset', debianPackage: 'ipset' },
  { program: 'mount', debianPackage: 'mount' },
  { program: 'unshare', debianPackage: 'util-linux' },
  { program: 'nsenter', debianPackage: 'util-linux' },
  { program: 'setpriv', debianPackage: 'util-linux' },
  { program: 'pivot_root', debianPackage: 'util-linux' },
]

/** The directories that hold system programs belong to the search, whatever a user's PATH says. */
export function systemPath(path: string | undefined): string {
  const parts = (path ?? '').split(delimiter).filter((part) => part !== '')
  for (const part of ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin']) {
    if (!parts.includes(part)) parts.push(part)
  }
  return parts.join(delimiter)
}

export function isInstalled(program: string, path = process.env.PATH ?? ''): boolean {
  return path.split(delimiter).some((directory) => {
    try {
      accessSync(join(directory, program), constants.X_OK)
      return true
    } catch {
      return false
    }
  })
}

/** Debian packages whose programs are missing. */
export function missingPackages(path = process.env.PATH ?? ''): string[] {
  const missing = required.filter(({ program }) => !isInstalled(program, path))
  return [...new Set(missing.map(({ debianPackage }) => debianPackage))]
}

/**
 * Installs what is missing where that is possible, after saying so.
 * @throws StandaloneError with the command to run where it is not
 */
export async function ensurePrerequisites(note: (message: string) => void): Promise<void> {
  const missing = missingPackages()
  if (missing.length === 0) return
  const command = `apt-get install -y ${missing.join(' ')}`
  if (process.getuid?.() !== 0 || !isInstalled('apt-get')) {
    throw new StandaloneError(
      'MISSING_PROGRAMS',
      `programs are missing that come with the packages ${missing.join(', ')}; on Debian or Ubuntu: sudo ${command}`,
    )
  }
  note(`installing Debian packages: ${missing.join(', ')}`)
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
  await tryRun(['apt-get', 'update'], { env, timeoutMs: 300_000 })
  const result = await tryRun(command.split(' '), { env, timeoutMs: 600_000 })
  const left = missingPackages()
  if (left.length > 0) {
    throw new StandaloneError(
      'MISSING_PROGRAMS',
      `could not install ${left.join(', ')} (${command}): ${result.stderr.trim().split('\n').at(-1) ?? ''}`,
    )
  }
}
