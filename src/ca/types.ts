// Certificates as the mesh exchanges them.

/** A signed workload certificate with its key and trust. All PEM. */
export interface WorkloadCertificate {
  readonly privateKey: string
  readonly leaf: string
  readonly intermediates: readonly string[]
  /** One or more root certificates that peers are verified against. */
  readonly roots: readonly string[]
  readonly notBefore: Date
  readonly notAfter: Date
  readonly serial: string
}

export interface SigningRequest {
  readonly csrPem: string
  /** SPIFFE ids, DNS names or IPs to put in the certificate; what the CSR asks for is ignored. */
  readonly identities: readonly string[]
  /** Requested lifetime in seconds; 0 or less takes the default. */
  readonly validitySeconds: number
}

export interface CertificateAuthority {
  /** Leaf first, root bundle last (one element, possibly several certificates). Rejects with a SigningError. */
  sign(request: SigningRequest): Promise<readonly string[]>
  /** The current trust bundle, PEM. */
  readonly rootBundle: string
  /** Called after the signing certificate or the bundle changed. */
  subscribe(listener: () => void): () => void
}

/** Who a request comes from, once one authenticator accepted it. */
export interface Caller {
  readonly identities: readonly string[]
  /** From a Kubernetes token; pod fields are absent for tokens not bound to a pod. */
  readonly kubernetes?: {
    readonly namespace: string
    readonly serviceAccount: string
    readonly podName?: string
    readonly podUid?: string
  }
  readonly source: 'client-certificate' | 'jwt' | 'oidc' | 'xfcc'
}
