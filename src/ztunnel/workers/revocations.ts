// A worker's revocation lists, as the main thread read them.
import type { X509Certificate } from 'node:crypto'
import { parseRevocationLists, type RevocationList } from '../../ca/revocation/index.ts'
import { judgeChain, type RevocationVerdict } from '../certificates/revocation-verdict.ts'
import type { RevocationSource } from '../certificates/revocations.ts'

export interface ReceivedRevocations {
  receive(source: RevocationSource): void
  /** Lets nobody through before there are lists. */
  check(chain: readonly X509Certificate[], known: readonly X509Certificate[]): RevocationVerdict
  /** Calls the listener after each change. Returns the function that ends it. */
  subscribe(listener: () => void): () => void
}

export function createReceivedRevocations(): ReceivedRevocations {
  const listeners = new Set<() => void>()
  let lists: readonly RevocationList[] | undefined
  let reason = 'the revocation lists have not been read yet'
  return {
    receive(source) {
      if (source.kind === 'lists') lists = parseRevocationLists(Buffer.from(source.bytes))
      else reason = source.reason
      for (const listener of listeners) listener()
    },
    check: (chain, known) => (lists === undefined ? { kind: 'unknown', reason } : judgeChain(lists, chain, known)),
    subscribe(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
  }
}
