// The trust bundle that goes with a chain another signer has returned.
import { X509Certificate } from 'node:crypto'
import { certificateBlocks, isIssuedBy } from '../../util/index.ts'
import { SigningError } from '../signing/errors.ts'

/**
 * The chain with its root last: the mesh's configured roots (which may hold intermediates) when there are any, else the last
 * certificate of the chain itself if it is a CA. Throws a SigningError (CSR_ERROR) when one of them cannot be parsed, and when the leaf
 * does not lead to that root over certificates that are valid at the time.
 */
export function chainWithRoot(chainPem: string, meshRootPem: string, at: Date = new Date()): readonly string[] {
  const chain = certificateBlocks(chainPem)
  const meshRoots = certificateBlocks(meshRootPem)
  const parsed = chain.map((pem) => parse(pem, 'the signer returned a certificate that cannot be parsed'))
  const [last, lastParsed] = [chain.at(-1), parsed.at(-1)]
  if (last === undefined || lastParsed === undefined) throw refusal('the signer returned no certificate')
  const isOwnRoot = chain.length > 1 && lastParsed.ca
  if (meshRoots.length === 0) {
    if (!isOwnRoot) throw refusal('failed to find root cert from either signed cert-chain or mesh config')
    checkPath(parsed.slice(0, -1), [lastParsed], at)
    return chain
  }
  checkPath(
    parsed,
    meshRoots.map((pem) => parse(pem, "a root that is configured for the signer's certificates cannot be parsed")),
    at,
  )
  return meshRoots.length === 1 && meshRoots[0] === last ? chain : [...chain, meshRoots.join('')]
}

/** The leaf must lead to a certificate of the bundle, over the chain. */
function checkPath(chain: readonly X509Certificate[], roots: readonly X509Certificate[], at: Date): void {
  const isValid = (one: X509Certificate): boolean => one.validFromDate <= at && one.validToDate > at
  const bundle = roots.filter(isValid)
  const issuers = [...chain.slice(1).filter(isValid), ...bundle]
  if (chain[0] !== undefined && !isValid(chain[0])) throw refusal('the signed certificate is not valid now')
  if (chain[0]?.ca) throw refusal('the signed certificate is an authority')
  const path: X509Certificate[] = []
  let current: X509Certificate | undefined = chain[0]
  while (current !== undefined && path.length <= issuers.length) {
    const here: X509Certificate = current
    path.push(here)
    const root = bundle.find((candidate) => candidate.ca && isIssuedBy(here, candidate))
    if (root !== undefined) return
    current = issuers.find((candidate) => !path.includes(candidate) && candidate.ca && isIssuedBy(here, candidate))
  }
  throw refusal('the signed certificate does not verify against the root')
}

function parse(pem: string, refused: string): X509Certificate {
  try {
    return new X509Certificate(pem)
  } catch (cause) {
    throw refusal(refused, cause)
  }
}

function refusal(message: string, cause?: unknown): SigningError {
  return new SigningError('CSR_ERROR', message, { cause })
}
