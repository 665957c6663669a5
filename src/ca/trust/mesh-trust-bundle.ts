// The roots that a mesh with several of them trusts, gathered from their sources. A source that says something unusable keeps what it said before.
import { X509Certificate } from 'node:crypto'
import { certificateBlocks } from '../../util/index.ts'
import { TrustBundleError } from './spiffe-bundle.ts'

export interface MeshTrustBundle {
  /** Every root once, in an order that does not depend on who said it first. */
  readonly roots: readonly string[]
  /**
   * Replaces what a source says, PEM texts of one or several certificates. Throws a TrustBundleError for one that is no CA: then everything stays as it was.
   */
  update(source: string, pems: readonly string[]): void
  /** Forgets the sources that are not among these. */
  keep(sources: ReadonlySet<string>): void
  /** Called after the roots changed. */
  subscribe(listener: () => void): () => void
}

export function createMeshTrustBundle(): MeshTrustBundle {
  const said = new Map<string, readonly string[]>()
  const listeners = new Set<() => void>()
  let roots: readonly string[] = []

  function gather(): void {
    const next = [...new Set([...said.values()].flat())].sort()
    if (next.length === roots.length && next.every((pem, at) => pem === roots[at])) return
    roots = next
    for (const listener of [...listeners]) listener()
  }

  return {
    get roots() {
      return roots
    },
    update(source, pems) {
      said.set(source, pems.flatMap(authoritiesOf))
      gather()
    },
    keep(sources) {
      for (const source of said.keys()) if (!sources.has(source)) said.delete(source)
      gather()
    },
    subscribe(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
  }
}

function authoritiesOf(pem: string): readonly string[] {
  const blocks = certificateBlocks(pem)
  if (blocks.length === 0) throw new TrustBundleError('expected a PEM certificate')
  for (const block of blocks) {
    const certificate = parsed(block)
    if (!certificate.ca) throw new TrustBundleError(`${certificate.subject}: is no certificate authority`)
  }
  return blocks
}

function parsed(block: string): X509Certificate {
  try {
    return new X509Certificate(block)
  } catch (cause) {
    throw new TrustBundleError('a certificate cannot be parsed', { cause })
  }
}
