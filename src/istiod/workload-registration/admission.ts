// Whether a proxy may register as a member of a group, or report the health of an entry: only as who it proves to be.
import { status } from '@grpc/grpc-js'
import { parseSpiffe } from '../../ca/index.ts'
import { StreamError } from '../../xds/index.ts'
import type { RegisteringProxy } from './entry.ts'

/** `serviceAccount`: that of the group's template or of the entry; absent: any of the namespace. Throws a StreamError. */
export function admitRegistration(
  { namespace, identities, proxyId }: RegisteringProxy,
  serviceAccount: string | undefined,
): void {
  const proven = identities.map(identityOf).filter((identity) => identity !== undefined)
  if (proven.length === 0) {
    throw new StreamError(status.PERMISSION_DENIED, 'registration of WorkloadEntry requires a verified identity')
  }
  const isWanted = proven.some(
    (identity) => identity.namespace === namespace && (!serviceAccount || identity.serviceAccount === serviceAccount),
  )
  if (isWanted) return
  throw new StreamError(
    status.PERMISSION_DENIED,
    `registration of WorkloadEntry for ${proxyId}: the identity is not ${namespace}/${serviceAccount || '*'}`,
  )
}

function identityOf(text: string): { readonly namespace: string; readonly serviceAccount: string } | undefined {
  try {
    return parseSpiffe(text)
  } catch {
    return undefined
  }
}
