// The end of a stream with a gRPC status.
import type { status } from '@grpc/grpc-js'

export class StreamError extends Error {
  readonly code: status

  constructor(code: status, message: string) {
    super(message)
    this.name = 'StreamError'
    this.code = code
  }
}
