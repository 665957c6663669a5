// The certificate authority of the mesh: signs with the material in force, which can be replaced while it runs.
import type { CertificateAuthority, SigningRequest } from '../types.ts'
import { checkCertificateRequest } from './csr.ts'
import { SigningError } from './errors.ts'
import { generatePrivateKey, privateKeyPem } from './generate-key.ts'
import { formatGoDuration } from './go-duration.ts'
import { certificatePem, issueLeaf, publicKeyDer } from './issue.ts'
import type { SigningMaterial } from './material.ts'

export interface AuthorityOptions {
  readonly material: SigningMaterial
  /** Seconds a certificate lives when the request names no lifetime. */
  readonly defaultTtlSeconds: number
  /** Longer requests are refused. */
  readonly maxTtlSeconds: number
  readonly now?: () => Date
}

/** The key and certificate of a server, PEM. */
export interface ServingCertificate {
  readonly privateKey: string
  /** Leaf first. */
  readonly chain: string
  readonly roots: string
  readonly notAfter: Date
}

export interface SelfAuthority extends CertificateAuthority {
  readonly material: SigningMaterial
  /** Puts other material in force and tells the subscribers. */
  replace(material: SigningMaterial): void
  /** A certificate for our own servers: a new key of the CA's kind, no maximum but the signing certificate's end. */
  issueServingCertificate(names: readonly string[], ttlSeconds: number): Promise<ServingCertificate>
}

/** Early enough for the clocks of peers that are behind. */
const backdatedMs = 2 * 60_000
const longestCommonName = 64

export function createAuthority(options: AuthorityOptions): SelfAuthority {
  const { defaultTtlSeconds, maxTtlSeconds, now = () => new Date() } = options
  const listeners = new Set<() => void>()
  let material = options.material

  /** The dates of a certificate issued now. Throws a SigningError when the signing certificate has expired. */
  function validity(ttlSeconds: number): { readonly notBefore: Date; readonly notAfter: Date } {
    const issued = now().getTime()
    const end = material.notAfter.getTime()
    if (end <= issued) throw new SigningError('CERT_GEN_ERROR', 'signing certificate has expired')
    return {
      notBefore: new Date(issued - backdatedMs),
      notAfter: new Date(Math.min(issued + ttlSeconds * 1000, end)),
    }
  }

  function grantedTtl(requestedSeconds: number): number {
    if (!(requestedSeconds > 0)) return defaultTtlSeconds
    if (requestedSeconds <= maxTtlSeconds) return requestedSeconds
    const [asked, allowed] = [requestedSeconds, maxTtlSeconds].map(formatGoDuration)
    throw new SigningError('TTL_ERROR', `requested TTL ${asked} is greater than the max allowed TTL ${allowed}`)
  }

  async function sign(request: SigningRequest): Promise<readonly string[]> {
    const { publicKey, commonName } = await checkCertificateRequest(request.csrPem)
    const ttlSeconds = grantedTtl(request.validitySeconds)
    const { chain, rootBundle } = material
    const [first = ''] = request.identities
    const wantsCommonName = commonName !== '' && first.length <= longestCommonName
    const leaf = await issue({
      publicKey,
      names: request.identities,
      ...(wantsCommonName ? { commonName: first } : {}),
      ...validity(ttlSeconds),
    })
    return [leaf, ...chain, rootBundle]
  }

  async function issue(request: Parameters<typeof issueLeaf>[1]): Promise<string> {
    try {
      return certificatePem(await issueLeaf(material, request))
    } catch (cause) {
      if (cause instanceof SigningError) throw cause
      throw new SigningError('CERT_GEN_ERROR', 'the certificate could not be made', { cause })
    }
  }

  return {
    sign,
    get material() {
      return material
    },
    get rootBundle() {
      return material.rootBundle
    },
    replace(next) {
      material = next
      for (const listener of [...listeners]) listener()
    },
    async issueServingCertificate(names, ttlSeconds) {
      const { chain, rootBundle, key } = material
      const dates = validity(ttlSeconds)
      const serverKey = await generatePrivateKey(key.kind)
      const leaf = await issue({ publicKey: publicKeyDer(serverKey), names, ...dates })
      return {
        privateKey: privateKeyPem(serverKey),
        chain: [leaf, ...chain].join(''),
        roots: rootBundle,
        notAfter: dates.notAfter,
      }
    },
    subscribe(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
  }
}
