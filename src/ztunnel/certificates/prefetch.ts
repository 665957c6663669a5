// Which identities a node fetches ahead: those of its own meshed workloads, until the last of each is gone.
import { buildSpiffe } from '../../util/index.ts'
import type { Workload } from '../model.ts'
import type { CertificateManager } from './manager.ts'

/** True for workloads of this node that take part in the mesh. Without a node name every workload counts as local. */
export function isPrefetched(
  workload: Pick<Workload, 'node' | 'protocol' | 'nativeTunnel'>,
  nodeName: string | undefined,
): boolean {
  const isLocal = nodeName === undefined || workload.node === nodeName
  return isLocal && (workload.protocol === 'HBONE' || workload.nativeTunnel)
}

/**
 * Follows workloads as they come and go: hand it each change (before: absent when added, after: absent when removed). A new identity
 * is prefetched, one whose last workload left is forgotten.
 */
export function createPrefetch(
  certificates: Pick<CertificateManager, 'prefetch' | 'forget'>,
  nodeName: string | undefined,
): (before: Workload | undefined, after: Workload | undefined) => void {
  const users = new Map<string, Set<string>>()

  const identityOf = (workload: Workload | undefined): string | undefined => {
    if (workload === undefined || !isPrefetched(workload, nodeName)) return undefined
    const { trustDomain, namespace, serviceAccount } = workload
    try {
      return buildSpiffe({ trustDomain, namespace, serviceAccount })
    } catch {
      // No certificate can be had for it; its connections will be told so.
      return undefined
    }
  }

  return (before, after) => {
    const [left, entered] = [identityOf(before), identityOf(after)]
    if (after !== undefined && entered !== undefined) {
      const uids = users.get(entered) ?? new Set()
      users.set(entered, uids.add(after.uid))
      certificates.prefetch(entered)
    }
    if (before === undefined || left === undefined || (left === entered && before.uid === after?.uid)) return
    const uids = users.get(left)
    uids?.delete(before.uid)
    if (uids?.size !== 0) return
    users.delete(left)
    certificates.forget(left)
  }
}
