// What a user can do something about: printed without a stack.

/** `code` is stable; the message says what is wrong and what to do. */
export class StandaloneError extends Error {
  readonly code: string
  constructor(code: string, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'StandaloneError'
    this.code = code
  }
}
