// Why a certificate was not signed, and why signing material cannot be used.

/** The same words label the metric of failed signings. */
export type SigningErrorCode = 'CSR_ERROR' | 'TTL_ERROR' | 'CA_NOT_READY' | 'CERT_GEN_ERROR'

export class SigningError extends Error {
  readonly code: SigningErrorCode

  constructor(code: SigningErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'SigningError'
    this.code = code
  }
}

export type MaterialErrorCode =
  /** Some of the files or keys are there, others are not. */
  | 'INCOMPLETE'
  /** They are all there but do not fit together, or may not sign. */
  | 'INVALID'
  /** A replacement has other roots, which is not allowed. */
  | 'ROOT_CHANGED'

export class MaterialError extends Error {
  readonly code: MaterialErrorCode

  constructor(code: MaterialErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'MaterialError'
    this.code = code
  }
}
