// What can go wrong with a tunnel, by a code that callers act on.

export type HboneErrorCode =
  /** The TLS handshake failed. */
  | 'TLS'
  /** The peer's identity is not one of those expected. */
  | 'PEER_IDENTITY'
  /** The peer does not speak HTTP/2 as it should. */
  | 'HTTP2'
  /** The CONNECT was answered with another status than 200; `status` tells. */
  | 'STATUS'
  /** The connection was closing before the peer looked at the request: another connection may be tried. */
  | 'RETRY'
  /** No answer in time. */
  | 'TIMEOUT'
  /** The pool was closed. */
  | 'DRAINING'
  /** The caller gave up. */
  | 'ABORTED'

export class HboneError extends Error {
  readonly code: HboneErrorCode
  readonly status: number | undefined

  constructor(code: HboneErrorCode, message: string, options: { cause?: unknown; status?: number } = {}) {
    super(message, { cause: options.cause })
    this.name = 'HboneError'
    this.code = code
    this.status = options.status
  }
}

export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))
