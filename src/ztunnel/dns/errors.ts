// What can go wrong with a DNS query.

export type DnsErrorCode = 'MALFORMED_MESSAGE' | 'TIMEOUT' | 'NO_SERVERS' | 'UPSTREAM_FAILED' | 'OVERLOADED'

export class DnsError extends Error {
  readonly code: DnsErrorCode

  constructor(code: DnsErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}
