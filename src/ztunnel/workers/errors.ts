// What goes wrong between threads.

/** A call to another thread that failed: with the code and message of the error there, or for want of an answer. */
export class CallError extends Error {
  /** TIMEOUT, ABORTED, ENDED, or the code of the other thread's error. */
  readonly code: string

  constructor(code: string, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'CallError'
    this.code = code
  }
}

/** A worker ended that should run: the data plane is not whole any more, and the process is to end. */
export class WorkerError extends Error {
  readonly code = 'WORKER_ENDED'
  readonly worker: number

  constructor(worker: number, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'WorkerError'
    this.worker = worker
  }
}
