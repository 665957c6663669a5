// Which node proxies may have certificates of which pods, by cluster.
import { type AuthorizeImpersonation, createNodeAuthorizer, type PodIndex, parseTrustedAccounts } from '../ca/index.ts'
import type { Scope } from '../observability/index.ts'
import type { DiscoverySettings } from './settings.ts'

/** The authorizer of a cluster; undefined for one that is not known, and for all when no account is trusted. */
export function nodeAuthorizers(
  settings: Pick<DiscoverySettings, 'trustedNodeAccounts' | 'clusterAliases'>,
  podsOf: (clusterId: string) => PodIndex | undefined,
  trustDomains: () => readonly string[],
  log: Scope,
): (clusterId: string) => AuthorizeImpersonation | undefined {
  const trustedAccounts = parseTrustedAccounts(settings.trustedNodeAccounts, (message) => log.warn(message))
  if (trustedAccounts.size === 0) return () => undefined
  return (clusterId) => {
    const pods = podsOf(settings.clusterAliases.get(clusterId) ?? clusterId)
    if (pods === undefined) return undefined
    return createNodeAuthorizer({ trustedAccounts, trustDomains, pods })
  }
}
