// What can be wrong with an input of the mesh state.

export type StateErrorCode = 'INVALID_RESOURCE' | 'INVALID_LOCAL_FILE' | 'UNKNOWN_LOCAL_WORKLOAD' | 'ABORTED'

export class StateError extends Error {
  readonly code: StateErrorCode

  constructor(code: StateErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}

export const invalidResource = (message: string): StateError => new StateError('INVALID_RESOURCE', message)

export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))
