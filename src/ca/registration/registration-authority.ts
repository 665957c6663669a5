// Has another signer of the cluster certify requests, through CertificateSigningRequests that we approve.
import { X509Certificate } from 'node:crypto'
import { isSameBundle, mergeBundles } from '../../util/index.ts'
import { subjectAltNamesOf } from '../client/index.ts'
import { SigningError } from '../signing/errors.ts'
import { grantedTtl } from '../signing/granted-ttl.ts'
import type { CertificateAuthority, SigningRequest } from '../types.ts'
import { chainWithRoot } from './root-selection.ts'
import { type SignerNames, signerNameOf } from './signer-name.ts'
import { validateRequestForSigner } from './validate-csr.ts'

/** Creates, approves, awaits and deletes a CertificateSigningRequest; resolves with the PEM chain of its status. */
export type SignInCluster = (request: {
  readonly csrPem: string
  readonly signerName: string
  readonly expirationSeconds: number
  readonly usages: readonly string[]
}) => Promise<string>

export interface RegistrationAuthorityOptions extends SignerNames {
  readonly signInCluster: SignInCluster
  /** The roots that the mesh's configuration names for a signer, PEM; empty when it names none. */
  readonly rootsOf: (signerName: string) => string
  readonly defaultTtlSeconds: number
  readonly maxTtlSeconds: number
}

export interface RegistrationAuthority extends Omit<CertificateAuthority, 'sign'> {
  /** `requestedSigner`: the signer that the request names, or empty. */
  sign(request: SigningRequest, requestedSigner?: string): Promise<readonly string[]>
}

const usages = ['digital signature', 'key encipherment', 'server auth', 'client auth']

export function createRegistrationAuthority(options: RegistrationAuthorityOptions): RegistrationAuthority {
  const { signInCluster, rootsOf, defaultSigner } = options
  const listeners = new Set<() => void>()
  let bundle = mergeBundles(rootsOf(defaultSigner))

  return {
    async sign({ csrPem, identities, validitySeconds }, requestedSigner = '') {
      const { publicKey, identity } = validateRequestForSigner(csrPem, identities)
      const expirationSeconds = grantedTtl(validitySeconds, options)
      const signerName = signerNameOf(options, requestedSigner)
      let signed: string
      try {
        signed = await signInCluster({ csrPem, signerName, expirationSeconds, usages })
      } catch (cause) {
        throw new SigningError('CERT_GEN_ERROR', `signer ${signerName} did not sign the certificate`, { cause })
      }
      const chain = chainWithRoot(signed, rootsOf(signerName))
      checkLeaf(new X509Certificate(chain[0] ?? ''), publicKey, identity)
      const root = chain.at(-1) ?? ''
      if (signerName === defaultSigner && !isSameBundle(bundle, root)) {
        bundle = mergeBundles(root)
        for (const listener of [...listeners]) listener()
      }
      return chain
    },
    get rootBundle() {
      return bundle
    },
    subscribe(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
  }
}

/** What came back must be for the key that was asked for, and name whom it was asked for and nobody else, in whatever kind of name. */
function checkLeaf(leaf: X509Certificate, publicKey: Uint8Array, identity: string): void {
  if (!leaf.publicKey.export({ type: 'spki', format: 'der' }).equals(publicKey)) {
    throw new SigningError('CERT_GEN_ERROR', 'the signer has certified another key')
  }
  const names = subjectAltNamesOf(leaf) ?? []
  const foreign = names.find(({ kind, value }) => kind !== 'uri' || value !== identity)
  if (foreign !== undefined) {
    throw new SigningError('CERT_GEN_ERROR', `the signer has certified ${foreign.value} (${foreign.kind})`)
  }
  if (names.length !== 1) {
    throw new SigningError(
      'CERT_GEN_ERROR',
      `the signer has certified ${identity} ${names.length} times: expected once`,
    )
  }
  // Proxies that forward certificates tell common names, too, which are then taken for identities.
  const commonName = [leaf.toLegacyObject().subject.CN ?? []].flat().find((name) => name !== identity)
  if (commonName !== undefined) {
    throw new SigningError('CERT_GEN_ERROR', `the signer has certified ${commonName} (common name)`)
  }
}
