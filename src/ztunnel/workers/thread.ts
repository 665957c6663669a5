// Where a worker starts.
import { flushCompileCache } from 'node:module'
import { workerData } from 'node:worker_threads'
import { runWorker } from './run-worker.ts'
import type { WorkerData } from './worker-data.ts'

// Structured data of our own main thread.
runWorker(workerData as WorkerData)
// What was compiled is kept for the next start, if anything is.
setTimeout(flushCompileCache, 3_000).unref()
