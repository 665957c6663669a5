// The certificate authority of the mesh: signs with the material in force, which can be replaced while it runs.
import type { CertificateAuthority, SigningRequest } from '../types.ts'
import { checkCertificateRequest } from './csr.ts'
import { SigningError } from './errors.ts'
import { generatePrivateKey, privateKeyPem } from './generate-key.ts'
import { grantedTtl, type Lifetimes } from './granted-ttl.ts'
import { certificatePem, issueLeaf, type LeafRequest, publicKeyDer } from './issue.ts'
import type { SigningMaterial } from './material.ts'

export interface AuthorityOptions extends Lifetimes {
  readonly material: SigningMaterial
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
  /** Does the work once all that was given before has ended: material that is read, and then replaced, must not have changed meanwhile. */
  inTurn<T>(work: () => Promise<T>): Promise<T>
  /** A certificate for our own servers: a new key of the CA's kind, no maximum but the signing certificate's end. */
  issueServingCertificate(names: readonly string[], ttlSeconds: number): Promise<ServingCertificate>
}

/** Early enough for the clocks of peers that are behind. */
const backdatedMs = 2 * 60_000
const longestCommonName = 64

export function createAuthority(options: AuthorityOptions): SelfAuthority {
  const { now = () => new Date() } = options
  const listeners = new Set<() => void>()
  let material = options.material
  let lastTurn: Promise<unknown> = Promise.resolve()

  /** The dates of a certificate issued now. Throws a SigningError when the signing certificate has expired. */
  function validity(
    signer: SigningMaterial,
    ttlSeconds: number,
  ): { readonly notBefore: Date; readonly notAfter: Date } {
    const issued = now().getTime()
    const end = signer.notAfter.getTime()
    if (end <= issued) throw new SigningError('CERT_GEN_ERROR', 'signing certificate has expired')
    return {
      notBefore: new Date(issued - backdatedMs),
      notAfter: new Date(Math.min(issued + ttlSeconds * 1000, end)),
    }
  }

  async function sign(request: SigningRequest): Promise<readonly string[]> {
    const { publicKey, commonName } = checkCertificateRequest(request.csrPem)
    const ttlSeconds = grantedTtl(request.validitySeconds, options)
    const signer = material
    const [first = ''] = request.identities
    const wantsCommonName = commonName !== '' && first.length <= longestCommonName
    const leaf = await issue(signer, {
      publicKey,
      names: request.identities,
      ...(wantsCommonName ? { commonName: first } : {}),
      ...validity(signer, ttlSeconds),
    })
    return [leaf, ...signer.chain, signer.rootBundle]
  }

  async function issue(signer: SigningMaterial, request: LeafRequest): Promise<string> {
    try {
      return certificatePem(await issueLeaf(signer, request))
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
    inTurn(work) {
      const turn = lastTurn.then(work)
      lastTurn = turn.catch(() => {})
      return turn
    },
    async issueServingCertificate(names, ttlSeconds) {
      // Held on to: other material may come into force while the key is made.
      const signer = material
      const dates = validity(signer, ttlSeconds)
      const serverKey = await generatePrivateKey(signer.key.kind)
      const leaf = await issue(signer, { publicKey: publicKeyDer(serverKey), names, ...dates })
      return {
        privateKey: privateKeyPem(serverKey),
        chain: [leaf, ...signer.chain].join(''),
        roots: signer.rootBundle,
        notAfter: dates.notAfter,
      }
    },
    subscribe(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
  }
}
