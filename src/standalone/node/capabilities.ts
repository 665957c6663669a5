// The rights of a container's processes: the user, the groups and the capabilities its security contexts ask for.

import { ConfigError } from './environment.ts'
import { type IdMaps, readIdMaps } from './id-maps.ts'
import type { Container, PodSpec } from './types.ts'

/** What a root process of a container has without asking (the set that container runtimes agree on). */
const defaultCapabilities = [
  'audit_write',
  'chown',
  'dac_override',
  'fowner',
  'fsetid',
  'kill',
  'mknod',
  'net_bind_service',
  'net_raw',
  'setfcap',
  'setgid',
  'setpcap',
  'setuid',
  'sys_chroot',
]

/** The `setpriv` command line that drops to the container's rights; empty when there is nothing to drop. */
export function setprivArguments(spec: PodSpec, container: Container, ids: IdMaps = readIdMaps()): string[] {
  const pod = spec.securityContext ?? {}
  const own = container.securityContext ?? {}
  const user = own.runAsUser ?? pod.runAsUser
  const group = own.runAsGroup ?? pod.runAsGroup
  if ((own.runAsNonRoot ?? pod.runAsNonRoot) === true && (user === undefined || user === 0)) {
    throw new ConfigError(
      user === 0
        ? "container's runAsUser breaks non-root policy"
        : 'container has runAsNonRoot and would run as root: set runAsUser',
    )
  }
  const words: string[] = []
  // Without root there are no other users to become: the container stays what this program is.
  if (user !== undefined && ids.hasUser(user)) words.push(`--reuid=${user}`)
  const primary = group ?? (user === undefined ? undefined : 0)
  if (primary !== undefined && ids.hasGroup(primary)) words.push(`--regid=${primary}`)
  const groups = [...new Set([...(pod.fsGroup === undefined ? [] : [pod.fsGroup]), ...(pod.supplementalGroups ?? [])])]
  if (!ids.canSetGroups) words.push('--keep-groups')
  else if (groups.length > 0) words.push(`--groups=${groups.join(',')}`)
  else if (primary !== undefined) words.push('--clear-groups')
  if (own.allowPrivilegeEscalation === false) words.push('--no-new-privs')
  if (own.privileged !== true) {
    const set = capabilitySet(own.capabilities?.drop ?? [], own.capabilities?.add ?? [])
    if (set !== undefined) {
      const list = ['-all', ...set.map((name) => `+${name}`)].join(',')
      words.push('--inh-caps=-all', `--bounding-set=${list}`)
    }
  }
  return words.length === 0 ? [] : ['setpriv', ...words, '--']
}

/** The allowed capabilities in lower case, or undefined for all. */
function capabilitySet(drop: readonly string[], add: readonly string[]): string[] | undefined {
  const plain = (name: string) => name.toLowerCase().replace(/^cap_/, '')
  const added = add.map(plain)
  if (added.includes('all')) return undefined
  const dropped = new Set(drop.map(plain))
  const kept = dropped.has('all') ? [] : defaultCapabilities.filter((name) => !dropped.has(name))
  return [...new Set([...kept, ...added])].sort()
}
