// What revocation lists say of a peer's chain.
import type { X509Certificate } from 'node:crypto'
import { type RevocationList, revokedIn } from '../../ca/revocation/index.ts'

export type RevocationVerdict =
  | { readonly kind: 'good' }
  | { readonly kind: 'revoked'; readonly serial: string }
  /** No list can be read, and then nothing is to pass. */
  | { readonly kind: 'unknown'; readonly reason: string }

/** `known`: our own intermediates and roots, to continue a chain of which only a part is seen. */
export function judgeChain(
  lists: readonly RevocationList[],
  chain: readonly X509Certificate[],
  known: readonly X509Certificate[],
): RevocationVerdict {
  const revoked = revokedIn(chain, known, lists)
  return revoked === undefined ? { kind: 'good' } : { kind: 'revoked', serial: revoked.serialNumber }
}
