// A container's own view of the host's file system: the host's root with the pod's volumes mounted over it.
// A mount point that the host does not have is made in the container's view only, never on the host.
import { lstatSync, readdirSync, readlinkSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'

export interface Mount {
  /** Path on the host. */
  readonly source: string
  /** Absolute path in the container. */
  readonly target: string
  readonly readOnly: boolean
  readonly propagation?: 'HostToContainer' | 'Bidirectional'
}

/** What the plan needs to know of the host's files; replaced in tests. */
export interface HostFiles {
  kind(path: string): 'directory' | 'file' | 'link' | 'absent'
  link(path: string): string
  entries(path: string): string[]
}

export const hostFiles: HostFiles = {
  kind(path) {
    const stat = lstatSync(path, { throwIfNoEntry: false })
    if (stat === undefined) return 'absent'
    return stat.isSymbolicLink() ? 'link' : stat.isDirectory() ? 'directory' : 'file'
  },
  link: (path) => readlinkSync(path),
  entries: (path) => readdirSync(path),
}

/** What a container sees in /dev once something is mounted there (the default termination log, say): terminals and disks of the host are not its own. */
const devices = new Set(
  'fd full fuse kvm log mqueue net null ptmx pts random shm stderr stdin stdout tty urandom zero'.split(' '),
)

/** What is listed may be gone when it is mounted, as other programs of the host come and go: that is no failure. */
const bindIfThere = 'bind_if_there() { [ ! -e "$2" ] || mount "$1" "$2" "$3" || [ ! -e "$2" ]; }'

/**
 * The shell lines that build the view below `$root` (an empty directory) and make it the root. They run in a new
 * mount namespace whose mounts do not propagate to the host.
 */
export function mountScript(mounts: readonly Mount[], files: HostFiles = hostFiles, root = '$root'): string[] {
  const lines: string[] = [bindIfThere]
  /** Directories of the view that are ours to add to: what lies below them is made, not the host's. */
  const own = new Set<string>()
  const made = new Set<string>()
  const volumes: string[] = []
  const at = (path: string) => `"${root}"${quote(path)}`

  const mirror = (directory: string) => {
    own.add(directory)
    lines.push(`mount -t tmpfs -o mode=0755,size=1m lateen ${directory === '/' ? `"${root}"` : at(directory)}`)
    for (const name of files.entries(directory)) {
      if (directory === '/dev' && !devices.has(name)) continue
      const path = join(directory, name)
      switch (files.kind(path)) {
        case 'link':
          lines.push(`ln -s ${quote(files.link(path))} ${at(path)}`)
          break
        case 'directory':
          lines.push(`mkdir ${at(path)} && bind_if_there --rbind ${quote(path)} ${at(path)}`)
          break
        case 'file':
          lines.push(`: > ${at(path)} && bind_if_there --bind ${quote(path)} ${at(path)}`)
          break
        case 'absent': // vanished since the listing
          break
      }
    }
  }

  const makeTarget = (path: string, kind: 'directory' | 'file') => {
    if (volumes.some((volume) => path.startsWith(`${volume}/`))) {
      lines.push(kind === 'directory' ? `mkdir -p ${at(path)}` : `mkdir -p ${at(dirname(path))} && : >> ${at(path)}`)
      return
    }
    const missing: string[] = []
    let existing = path
    while (existing !== '/' && !made.has(existing) && files.kind(existing) === 'absent') {
      missing.unshift(existing)
      existing = dirname(existing)
    }
    if (missing.length === 0) return
    if (!own.has(existing) && !made.has(existing)) mirror(existing)
    for (const step of missing) {
      const last = step === path
      lines.push(last && kind === 'file' ? `: > ${at(step)}` : `mkdir ${at(step)}`)
      made.add(step)
    }
  }

  mirror('/')
  const byDepth = [...mounts].sort((a, b) => a.target.split('/').length - b.target.split('/').length)
  for (const mount of byDepth) {
    const target = resolveLinks(mount.target, files)
    const kind = statKind(mount.source, files)
    makeTarget(target, kind)
    lines.push(`mount --${mount.propagation ? 'r' : ''}bind ${quote(mount.source)} ${at(target)}`)
    if (mount.readOnly) lines.push(`mount -o remount,bind,ro ${at(target)}`)
    if (kind === 'directory') volumes.push(target)
  }
  lines.push(`cd "${root}"`, 'pivot_root . .', 'umount -l .', 'cd /')
  return lines
}

/** The path with the symbolic links of its existing part followed, as the container would follow them. */
export function resolveLinks(path: string, files: HostFiles, depth = 0): string {
  if (depth > 40) throw new Error(`too many symbolic links in ${path}`)
  const parts = path.split('/').filter((part) => part !== '' && part !== '.')
  let current = '/'
  for (const [index, part] of parts.entries()) {
    if (part === '..') {
      current = dirname(current)
      continue
    }
    const next = join(current, part)
    if (files.kind(next) === 'link') {
      return resolveLinks(
        join('/', join(pathFrom(current, files.link(next)), ...parts.slice(index + 1))),
        files,
        depth + 1,
      )
    }
    current = next
  }
  return current
}

function pathFrom(directory: string, link: string): string {
  return link.startsWith('/') ? link : join(directory, link)
}

function statKind(path: string, files: HostFiles): 'directory' | 'file' {
  if (files !== hostFiles) return files.kind(path) === 'directory' ? 'directory' : 'file'
  return statSync(path).isDirectory() ? 'directory' : 'file'
}

/** The text as one word of a POSIX shell. */
export function quote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}
