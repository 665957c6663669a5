// SPIFFE trust bundles: the document another trust domain publishes (SPIFFE Trust Domain and Bundle, section 4), and fetching it.
import { X509Certificate } from 'node:crypto'
import { request } from 'node:https'
import { toPem } from '../../util/index.ts'

export class TrustBundleError extends Error {
  readonly code = 'INVALID_TRUST_BUNDLE'
}

const longestMs = 10_000
const mostBytes = 1024 * 1024

/**
 * The roots of a bundle document, PEM: of the keys with the use `x509-svid`, each of which holds exactly one certificate. Other keys are
 * for other purposes. Throws a TrustBundleError.
 */
export function rootsOfBundle(text: string): readonly string[] {
  const keys = (jsonOf(text) as { readonly keys?: unknown } | null)?.keys
  if (!Array.isArray(keys)) throw new TrustBundleError('expected an object with keys')
  const roots = keys.flatMap((key: unknown, index) => {
    const { use, x5c } = (key ?? {}) as { readonly use?: unknown; readonly x5c?: unknown }
    if (use !== 'x509-svid') return []
    if (!Array.isArray(x5c) || x5c.length !== 1 || typeof x5c[0] !== 'string') {
      throw new TrustBundleError(`keys[${index}].x5c: expected exactly one certificate`)
    }
    return [rootOf(x5c[0], `keys[${index}].x5c`)]
  })
  if (roots.length === 0) throw new TrustBundleError('expected at least one key with the use x509-svid')
  return roots
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new TrustBundleError('expected JSON', { cause })
  }
}

function rootOf(base64: string, where: string): string {
  const der = Buffer.from(base64, 'base64')
  try {
    new X509Certificate(der)
  } catch (cause) {
    throw new TrustBundleError(`${where}: no certificate`, { cause })
  }
  return toPem('CERTIFICATE', der)
}

/**
 * Fetches the roots that an `https` address publishes. Its server is verified against the public roots that Node.js comes with, or `roots`
 * (PEM); redirects are not followed. Rejects with a TrustBundleError, or with the signal's reason.
 */
export async function fetchBundle(
  url: string,
  signal: AbortSignal,
  roots?: string | readonly string[],
): Promise<readonly string[]> {
  const parsed = URL.parse(url)
  if (parsed?.protocol !== 'https:') throw new TrustBundleError(`${url}: expected an https address`)
  const limit = AbortSignal.any([signal, AbortSignal.timeout(longestMs)])
  try {
    return rootsOfBundle(await textAt(parsed, limit, roots))
  } catch (cause) {
    signal.throwIfAborted()
    throw new TrustBundleError(`${url}: ${cause instanceof Error ? cause.message : String(cause)}`, { cause })
  }
}

function textAt(url: URL, signal: AbortSignal, roots: string | readonly string[] | undefined): Promise<string> {
  return new Promise((resolve, reject) => {
    const ca = typeof roots === 'string' || roots === undefined ? roots : [...roots]
    const asked = request(url, { signal, ...(ca === undefined ? {} : { ca }), agent: false }, (response) => {
      const chunks: Buffer[] = []
      let bytes = 0
      if (response.statusCode !== 200) {
        asked.destroy(new TrustBundleError(`status ${response.statusCode}`))
        return
      }
      response.on('data', (chunk: Buffer) => {
        bytes += chunk.byteLength
        if (bytes > mostBytes) asked.destroy(new TrustBundleError(`more than ${mostBytes} bytes`))
        else chunks.push(chunk)
      })
      response.on('error', reject)
      response.on('end', () => resolve(Buffer.concat(chunks).toString('utf8')))
    })
    asked.on('error', reject)
    asked.end()
  })
}
