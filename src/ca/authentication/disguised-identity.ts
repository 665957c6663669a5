// Names of other kinds that would pass for a SPIFFE identity among the identities of a caller.
import { AuthenticationError } from './authenticator.ts'

/**
 * Of a certificate only the URI names are checked to be of the trust domain that its roots vouch for. Throws an AuthenticationError for a DNS name
 * or a common name in which somebody has written an identity.
 */
export function refuseDisguised(name: string): void {
  if (/^\s*spiffe:/i.test(name)) {
    throw new AuthenticationError(`a name that is no URI reads as an identity: ${JSON.stringify(name)}`)
  }
}
