// Profiles of the process's threads, taken when somebody asks.
export { createProcessProfiler, type OfThread, type ProcessProfiler } from './process-profiler.ts'
export { createThreadProfiler, type ThreadProfiler } from './thread-profiler.ts'
