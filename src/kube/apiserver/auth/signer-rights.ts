// Rights over the name of a signer: to approve or sign its requests, or to say which roots are its own.
import type { AuthenticatedUser, Authorizer } from '../types.ts'

/** Whether the user may do this for the signer itself, or for all of its domain. */
export async function mayUseSigner(
  authorizer: Authorizer,
  user: AuthenticatedUser,
  verb: string,
  signerName: string,
): Promise<boolean> {
  const [domain = ''] = signerName.split('/')
  for (const name of [signerName, `${domain}/*`]) {
    const attributes = { user, verb, group: 'certificates.k8s.io', version: 'v1', resource: 'signers', name }
    if ((await authorizer.authorize({ kind: 'resource', ...attributes })).allowed) return true
  }
  return false
}
