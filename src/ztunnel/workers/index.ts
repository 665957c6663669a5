// The threads that carry connections, as the main thread starts, tells and asks them. What runs on them is loaded by them only.
export { CallError, WorkerError } from './errors.ts'
export type { MainCall, MainResults } from './messages.ts'
export type { LiveConnections, PodToServe, WorkerPod } from './served-pods.ts'
export { startWorkers, type Workers, type WorkersOptions } from './start.ts'
