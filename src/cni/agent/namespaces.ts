// Finds the network namespaces of running pods on this node.
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { type NetworkNamespace, openNetworkNamespace } from '../../linux/index.ts'
import type { RunTool } from '../../redirect/index.ts'

export interface NamespaceSearch {
  /** The node's /proc: `/proc`, or where it is mounted in the agent's pod. */
  readonly proc: string
  /**
   * A folder in which the container runtime keeps namespaces under names that contain the pod's UID (optional). Tried first; a runtime
   * that has no control groups to read UIDs from needs it.
   */
  readonly netnsDir?: string
}

const uidPattern = /pod([0-9a-f]{8}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{12})/gi

/** The pod a process belongs to, by its control groups; undefined for none or more than one. */
export function podUidOfCgroup(cgroup: string): string | undefined {
  const uids = new Set(
    [...cgroup.matchAll(uidPattern)].map((match) => (match[1] ?? '').replaceAll('_', '-').toLowerCase()),
  )
  return uids.size === 1 ? [...uids][0] : undefined
}

/**
 * Opens the namespaces of the given pods (UID → addresses). A namespace counts only if it owns one of the pod's addresses: a process of
 * another pod may carry the UID in its control groups. Pods without a known address are not looked for.
 */
export async function findPodNamespaces(
  pods: ReadonlyMap<string, readonly string[]>,
  search: NamespaceSearch,
  run: RunTool,
): Promise<Map<string, NetworkNamespace>> {
  const found = new Map<string, NetworkNamespace>()
  for (const { uid, path } of [...inDirectory(pods, search), ...inProc(pods, search)]) {
    const ips = pods.get(uid) ?? []
    if (found.has(uid) || ips.length === 0) continue
    const netns = openIfThere(path)
    if (netns === undefined) continue
    // Asked of the open handle: behind the path may be another process by now.
    if (await ownsAddress(`/proc/${process.pid}/fd/${netns.fd}`, ips, run)) found.set(uid, netns)
    else netns[Symbol.dispose]()
  }
  return found
}

/** Undefined when the process or the namespace is gone: another candidate may do. */
function openIfThere(path: string): NetworkNamespace | undefined {
  try {
    return openNetworkNamespace(path)
  } catch {
    return undefined
  }
}

interface Candidate {
  readonly uid: string
  readonly path: string
}

function inDirectory(pods: ReadonlyMap<string, unknown>, { netnsDir }: NamespaceSearch): Candidate[] {
  if (netnsDir === undefined) return []
  const names = list(netnsDir)
  return [...pods.keys()].flatMap((uid) =>
    names.filter((name) => name.includes(uid)).map((name) => ({ uid, path: join(netnsDir, name) })),
  )
}

/** Processes of the pods, one a namespace, the oldest process of a pod first. */
function inProc(pods: ReadonlyMap<string, unknown>, { proc }: NamespaceSearch): Candidate[] {
  const host = inode(join(proc, '1/ns/net'))
  const seen = new Set<string>()
  const candidates: (Candidate & { started: number })[] = []
  for (const pid of list(proc)) {
    if (!/^\d+$/.test(pid)) continue
    const path = join(proc, pid, 'ns/net')
    const uid = podUidOfCgroup(read(join(proc, pid, 'cgroup')))
    const id = inode(path)
    if (uid === undefined || id === undefined || id === host || !pods.has(uid) || seen.has(`${uid} ${id}`)) continue
    seen.add(`${uid} ${id}`)
    candidates.push({ uid, path, started: startTime(read(join(proc, pid, 'stat'))) })
  }
  return candidates.sort((a, b) => a.started - b.started)
}

/** Field 22 of /proc/<pid>/stat; the command in field 2 may hold blanks and brackets. */
function startTime(stat: string): number {
  return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? Number.POSITIVE_INFINITY)
}

async function ownsAddress(netns: string, ips: readonly string[], run: RunTool): Promise<boolean> {
  const { code, stdout } = await run('ip', ['-o', 'addr', 'show'], { netns })
  return code === 0 && ips.some((ip) => stdout.includes(` ${ip}/`))
}

function inode(path: string): string | undefined {
  try {
    const { dev, ino } = statSync(path, { bigint: true })
    return `${dev}:${ino}`
  } catch {
    return undefined
  }
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

function list(path: string): string[] {
  try {
    return readdirSync(path)
  } catch {
    return []
  }
}
