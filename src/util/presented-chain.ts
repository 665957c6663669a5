// The certificates that a client has presented in its TLS handshake. Nothing is said of whether they are any good.
import { X509Certificate } from 'node:crypto'
import type { DetailedPeerCertificate, TLSSocket } from 'node:tls'

/** More than any chain that is accepted has. */
const most = 16

/**
 * Leaf first; empty when there is none. Of certificates that issued none of the ones before, Node.js tells nothing. Once a handshake with
 * a verified client is over, it tells the leaf alone.
 */
export function presentedChain(socket: Pick<TLSSocket, 'getPeerCertificate'>): readonly X509Certificate[] {
  const chain: X509Certificate[] = []
  const seen = new Set<string>()
  let next: DetailedPeerCertificate | undefined = socket.getPeerCertificate(true)
  while (next?.raw !== undefined && chain.length < most) {
    const name = next.raw.toString('base64')
    // A self-signed one is its own issuer.
    if (seen.has(name)) break
    seen.add(name)
    chain.push(new X509Certificate(next.raw))
    next = next.issuerCertificate
  }
  return chain
}
