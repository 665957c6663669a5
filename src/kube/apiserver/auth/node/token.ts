// Which tokens a node may have issued: those that the volumes of its pods hold, bound to the pod.
import { forbidden } from '../../errors.ts'
import type { AuthenticatedUser, Authorizer, ObjectReader } from '../../types.ts'
import { nodeOfUser } from './identity.ts'
import { podReferences } from './pod-references.ts'

export interface WantedToken {
  readonly user: AuthenticatedUser
  readonly namespace: string
  readonly account: string
  readonly audiences: readonly string[]
  readonly bound: { readonly kind?: string; readonly name?: string; readonly uid?: string } | undefined
}

/** Rejects with ApiError 403 what a node asks for beyond that. Others than nodes are not concerned. */
export async function refuseForeignToken(
  wanted: WantedToken,
  objects: ObjectReader,
  authorizer: Authorizer,
): Promise<void> {
  const node = nodeOfUser(wanted.user)
  if (node === undefined) return
  const why = await refusal(node, wanted, objects, authorizer)
  if (why !== undefined) throw forbidden({ group: '', plural: 'serviceaccounts' }, wanted.account, why)
}

async function refusal(
  node: string,
  { user, namespace, account, audiences, bound }: WantedToken,
  objects: ObjectReader,
  authorizer: Authorizer,
): Promise<string | undefined> {
  if (bound?.kind !== 'Pod' || !bound.name) return 'node requested token not bound to a pod'
  if (!bound.uid) return 'node requested token with a pod binding without a uid'
  const pod = objects.get('', 'pods', { namespace, name: bound.name })
  if (pod === undefined || pod.metadata.uid !== bound.uid) {
    return `the UID in the bound object reference (${bound.uid}) does not match the UID in record`
  }
  if ((pod.spec as { nodeName?: string } | undefined)?.nodeName !== node) {
    return 'node requested token bound to a pod scheduled on a different node'
  }
  const { tokenAudiences } = podReferences(pod)
  for (const audience of audiences.length === 0 ? [''] : audiences) {
    if (tokenAudiences.has(audience)) continue
    const { allowed } = await authorizer.authorize({
      kind: 'resource',
      user,
      verb: 'request-serviceaccounts-token-audience',
      group: '',
      version: 'v1',
      resource: audience,
      namespace,
      name: account,
    })
    if (!allowed) return `audience "${audience}" not found in pod spec volume`
  }
  return undefined
}
