// The authorities this proxy has met in its own certificates: with them a peer's chain can be followed where TLS shows only a part.
import { X509Certificate } from 'node:crypto'
import { certificateBlocks } from '../../util/index.ts'

export interface KnownAuthorities {
  /** Takes in the intermediates and roots (PEM, one or more a text) that came with a certificate of ours. */
  learn(...texts: readonly string[]): void
  list(): readonly X509Certificate[]
}

/** Rotations bring new ones; those not seen for this many others are past. */
const mostKept = 64

export function createKnownAuthorities(): KnownAuthorities {
  const known = new Map<string, X509Certificate>()
  let listed: readonly X509Certificate[] = []

  function learnOne(pem: string): void {
    const present = known.get(pem)
    known.delete(pem)
    known.set(pem, present ?? new X509Certificate(pem))
    const [oldest] = known.keys()
    if (known.size > mostKept && oldest !== undefined) known.delete(oldest)
  }

  return {
    learn(...texts) {
      for (const text of texts) {
        for (const pem of certificateBlocks(text)) learnOne(pem)
      }
      listed = [...known.values()]
    },
    list: () => listed,
  }
}
