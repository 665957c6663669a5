// Why a connection could not be made, with the response flag that tells it in metrics.
import { HboneError } from '../../hbone/index.ts'
import { type ConnectionFailure, errorTexts, type ResponseFlag } from '../telemetry/index.ts'

export class ConnectionError extends Error {
  readonly flag: ResponseFlag

  constructor(flag: ResponseFlag, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'ConnectionError'
    this.flag = flag
  }
}

/** Any failure as the text and the flag that users see. */
export function describeFailure(error: unknown): ConnectionFailure {
  if (error instanceof ConnectionError) return { flag: error.flag, error: error.message }
  if (error instanceof HboneError) return describeTunnelFailure(error)
  const message = error instanceof Error ? error.message : String(error)
  return { flag: 'CONNECT', error: isSystemError(error) ? errorTexts.io(message) : message }
}

/** What broke a connection while its bytes were carried: the client (the first end) on the way out, the destination on the way back. */
export function describeBreak(error: Error, brokenEnd: 'first' | 'second' | undefined): ConnectionFailure {
  if (brokenEnd === undefined) return describeFailure(error)
  if ('syscall' in error && error.syscall === 'shutdown') {
    return { flag: 'CONNECT', error: errorTexts.closing(errorTexts.io(error.message)) }
  }
  const cause = isSystemError(error) ? errorTexts.io(error.message) : errorTexts.http2(error.message)
  return { flag: 'CONNECT', error: brokenEnd === 'first' ? errorTexts.send(cause) : errorTexts.receive(cause) }
}

const isSystemError = (error: unknown): boolean => error instanceof Error && 'syscall' in error

function describeTunnelFailure({ code, status, message }: HboneError): ConnectionFailure {
  switch (code) {
    case 'TLS':
    case 'PEER_IDENTITY':
      if (message === errorTexts.revoked) return { flag: 'CERT_REVOKED', error: message }
      return { flag: 'TLS_FAILURE', error: errorTexts.tls(message) }
    case 'HTTP2':
      return { flag: 'H2_HANDSHAKE_FAILURE', error: message }
    case 'STATUS':
      return { flag: status === 401 ? 'DENY' : 'CONNECT', error: message }
    case 'TIMEOUT':
    case 'RETRY':
    case 'DRAINING':
    case 'ABORTED':
      return { flag: 'CONNECT', error: message }
  }
}
