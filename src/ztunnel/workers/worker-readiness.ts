// The readiness endpoint, on a worker: a data plane that stands still must not be called ready.
import type { Scope } from '../../observability/index.ts'
import { type HttpServer, startHttpServer } from '../admin/http-server.ts'
import { readinessRoutes } from '../admin/readiness.ts'
import { stuckWorkers, type Vitals } from './vitals.ts'

export interface WorkerReadiness extends AsyncDisposable {
  /** Answers on a listening socket, which is taken over. */
  serve(fd: number): Promise<void>
  /** The tasks without which the process is not ready. */
  setPending(tasks: readonly string[]): void
}

/** Not ready until it is told what is pending. */
export function createWorkerReadiness(vitals: Vitals, log: Scope): WorkerReadiness {
  let pending: readonly string[] = ['start']
  let server: HttpServer | undefined
  let known: readonly number[] = []

  function stuck(): readonly number[] {
    const now = stuckWorkers(vitals)
    if (now.join() !== known.join()) log.warn('workers that stand still', { workers: now.join(',') || 'none' })
    known = now
    return now
  }

  return {
    async serve(fd) {
      server = await startHttpServer(readinessRoutes({ pending: () => pending, stuckWorkers: stuck }), { fd })
    },
    setPending(tasks) {
      pending = tasks
    },
    async [Symbol.asyncDispose]() {
      await server?.[Symbol.asyncDispose]()
    },
  }
}
