// Why no certificate came from a certificate authority.

export type CertificateErrorCode =
  /** The address, the roots or the token of the CA cannot be used. */
  | 'CA_CONFIGURATION'
  /** The CA refused or was not reached. */
  | 'CA_CALL'
  /** The CA answered with something that cannot be used or is not what was asked for. */
  | 'CA_ANSWER'
  /** Nobody wants this certificate any more. */
  | 'FORGOTTEN'
  /** The owner of the certificates has closed. */
  | 'CLOSED'

export class CertificateError extends Error {
  readonly code: CertificateErrorCode

  constructor(code: CertificateErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'CertificateError'
    this.code = code
  }
}
