// GET /healthz/ready. By itself, because the data plane serves it, which loads nothing else of this.
import type { Handle, HttpAnswer, Routes } from './http-server.ts'

export interface ReadinessSource {
  /** Names of tasks not done. */
  pending(): readonly string[]
  /** Workers whose event loop stands still. */
  stuckWorkers?(): readonly number[]
}

/** 200 when nothing is pending, 500 with what is, 503 with the workers that stand still. */
export function readinessRoutes(source: ReadinessSource): Routes {
  return new Map<string, Handle>([
    [
      '/healthz/ready',
      ({ method }) => {
        if (method !== 'GET') return plain(405, 'Invalid HTTP method\n')
        const pending = [...source.pending()].sort()
        if (pending.length > 0) return plain(500, `not ready, pending: ${pending.join(', ')}\n`)
        const stuck = source.stuckWorkers?.() ?? []
        return stuck.length === 0
          ? plain(200, 'ready\n')
          : plain(503, `not ready, stuck: ${stuck.map((worker) => `worker ${worker}`).join(', ')}\n`)
      },
    ],
  ])
}

const plain = (status: number, body: string): HttpAnswer => ({ status, contentType: 'text/plain; charset=utf-8', body })
