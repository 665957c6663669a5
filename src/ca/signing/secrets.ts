// The Secrets a CA keeps its material in, and the store they are in, as far as the CA knows it.

export interface SecretContent {
  readonly type: string
  /** Decoded text by key. */
  readonly data: Readonly<Record<string, string>>
  /** The resource version it was read at. */
  readonly version?: string
}

/** The Secrets of the system namespace. */
export interface SecretStore {
  read(name: string): Promise<SecretContent | undefined>
  /** False when another one was first. */
  create(name: string, secret: SecretContent): Promise<boolean>
  /** Writes over the version that was read; rejects when it has changed since. */
  replace(name: string, secret: SecretContent): Promise<void>
}

export const selfSignedSecretName = 'istio-ca-secret'
export const pluggedSecretName = 'cacerts'
export const selfSignedSecretType = 'istio.io/ca-root'

/** Marks a `cacerts` Secret whose content the CA made itself and may rotate. */
export const generatedMark = 'istio-generated'

/** Where the root that is to sign next waits until everybody trusts it. */
export const successorKeys = { certificate: 'next-ca-cert.pem', key: 'next-ca-key.pem' } as const

export const secretKeys = {
  certificate: 'ca-cert.pem',
  key: 'ca-key.pem',
  roots: 'root-cert.pem',
  chain: 'cert-chain.pem',
  crl: 'ca-crl.pem',
} as const
