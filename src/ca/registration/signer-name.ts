// The name of the cluster's signer that is to certify a request.
import { SigningError } from '../signing/errors.ts'

export interface SignerNames {
  /** Domain of the signers that requests may name. */
  readonly certSignerDomain: string
  /** The signer of requests that name none. */
  readonly defaultSigner: string
}

/** Throws a SigningError when the request names a signer but there is no domain for it. */
export function signerNameOf({ certSignerDomain, defaultSigner }: SignerNames, requestedSigner: string): string {
  if (requestedSigner === '') return defaultSigner
  if (certSignerDomain !== '') return `${certSignerDomain}/${requestedSigner}`
  throw new SigningError('CERT_GEN_ERROR', `certSignerDomain is required for signer ${requestedSigner}`)
}
