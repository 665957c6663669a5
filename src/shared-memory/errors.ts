// What can go wrong with shared memory.

export type SharedMemoryErrorCode = 'OUT_OF_MEMORY' | 'INVALID_MEMORY' | 'CONTENT_MOVED'

/**
 * `OUT_OF_MEMORY`: the limit is reached, or the system gives no more; nothing was changed. `INVALID_MEMORY`: not a memory of this
 * layout, or a reader it has no place for. `CONTENT_MOVED`: an iteration went on after its view had moved to another generation.
 */
export class SharedMemoryError extends Error {
  readonly code: SharedMemoryErrorCode

  constructor(code: SharedMemoryErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'SharedMemoryError'
    this.code = code
  }
}
