// Which user the kubelet runs as: rules of nftables know the node's own probes by it.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** The user id of the kubelet, from the node's processes; undefined when none is found. */
export function kubeletUid(proc: string): string | undefined {
  const read = (path: string): string => {
    try {
      return readFileSync(path, 'utf8')
    } catch {
      return ''
    }
  }
  for (const pid of readdirSync(proc)) {
    if (!/^\d+$/.test(pid)) continue
    const comm = read(join(proc, pid, 'comm')).trim()
    const isKubelet =
      (comm === 'kubelet' || comm === 'kubelite') && read(join(proc, pid, 'cmdline')).includes('kubelet')
    if (isKubelet || comm === 'k3s') return /^Uid:\s+(\d+)/m.exec(read(join(proc, pid, 'status')))?.[1]
  }
  return undefined
}
