// One worker as the main thread holds it.
import { getCompileCacheDir } from 'node:module'
import { dirname, extname } from 'node:path'
import { setFlagsFromString } from 'node:v8'
import { Worker } from 'node:worker_threads'
import { connectThread, type Logging, type MetricsRegistry } from '../../observability/index.ts'
import { type Calls, createCalls } from './calls.ts'
import { WorkerError } from './errors.ts'
import type { MainCall, MainResults, ToMain, ToWorker, WorkerCall, WorkerResults } from './messages.ts'
import type { WorkerData } from './worker-data.ts'

export interface WorkerThread {
  readonly index: number
  readonly call: Calls<WorkerCall, WorkerResults, MainCall>['call']
  post(message: ToWorker): void
  /** Resolves when it takes calls; rejects with a WorkerError when it ends before. */
  readonly started: Promise<void>
  /** Rejects with a WorkerError when it ends without having been told to. */
  readonly failed: Promise<never>
  /** Ends it at once, whatever it does. */
  terminate(): Promise<void>
}

export interface WorkerThreadOptions {
  readonly data: Omit<WorkerData, 'observability'>
  readonly logging: Logging
  readonly registry: MetricsRegistry
  /** Answers what the worker asks. */
  readonly serve: (call: MainCall, signal: AbortSignal) => Promise<MainResults[MainCall['kind']]>
}

/** Not so small that what a connection needs outlives it. */
const youngGenerationFlag = '--max-semi-space-size=4'

// The same file from source and from the built package.
const entry = new URL(`./thread${extname(import.meta.filename)}`, import.meta.url)

export function startWorkerThread({ data, logging, registry, serve }: WorkerThreadOptions): WorkerThread {
  const { index } = data
  const name = `worker ${index}`
  const observed = connectThread(name, { registry, logging })
  const cache = getCompileCacheDir()
  const workerData: WorkerData = {
    ...data,
    observability: observed.start,
  }
  // A flag is of all threads that start afterwards, and stronger than the limits that a thread can be given.
  setFlagsFromString(youngGenerationFlag)
  const worker = new Worker(entry, {
    name,
    workerData,
    transferList: [...observed.transfer, ...data.tunnels.links.values()],
    // Where this thread's compiled code is, the worker finds its own: without, it would turn all of it into JavaScript again.
    // A folder of its own for each version of Node is made below the one that is given.
    ...(cache === undefined ? {} : { env: { ...process.env, NODE_COMPILE_CACHE: dirname(cache) } }),
    // Sockets are made by system calls, and what they leave open is ours to close.
    trackUnmanagedFds: false,
  })
  const post = (message: ToWorker): void => worker.postMessage(message)
  const calls = createCalls<WorkerCall, WorkerResults, MainCall>({
    post: (message) => post(message as ToWorker),
    serve,
  })
  const started = Promise.withResolvers<void>()
  const failed = Promise.withResolvers<never>()
  let isTerminating = false
  // Whoever waits for one of them is told; nobody has to wait for both.
  started.promise.catch(() => undefined)
  failed.promise.catch(() => undefined)

  const fail = (error: WorkerError): void => {
    calls.end(error.message)
    started.reject(error)
    if (!isTerminating) failed.reject(error)
  }
  worker.on('message', (message: ToMain) => {
    if (message.kind === 'started') started.resolve()
    else calls.receive(message)
  })
  worker.on('error', (cause: unknown) => {
    const why = cause instanceof Error ? (cause.stack ?? cause.message) : String(cause)
    fail(new WorkerError(index, `${name} failed: ${why}`, { cause }))
  })
  worker.on('messageerror', (cause) =>
    fail(new WorkerError(index, `what ${name} said cannot be read: ${cause}`, { cause })),
  )
  worker.on('exit', (status) => fail(new WorkerError(index, `${name} ended with status ${status}`)))

  return {
    index,
    call: calls.call,
    post,
    started: started.promise,
    failed: failed.promise,
    async terminate() {
      isTerminating = true
      await worker.terminate()
    },
  }
}
