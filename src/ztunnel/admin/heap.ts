// GET /debug/pprof/heap: what memory is held by, sampled by V8; sampling is switched on and off on its own path.
import type { Session } from 'node:inspector/promises'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { Handle, HttpAnswer } from './http-server.ts'
import { encodeHeapPprof } from './pprof.ts'

/** Bytes allocated between two samples, on average. */
const samplingInterval = 128 * 1024

export interface HeapProfiling {
  /** The profile so far; 500 while sampling is off. */
  readonly profile: Handle
  /** `?activate=true|false`. */
  readonly toggle: Handle
}

/** Sampling is off until it is switched on: it costs a little all the time. */
export function createHeapProfiling(): HeapProfiling {
  let session: Session | undefined
  return {
    async profile() {
      if (session === undefined) {
        return plain(500, 'heap profiling is not active; switch it on with /debug/pprof/heap/profiling?activate=true\n')
      }
      // What is garbage already holds nothing.
      await session.post('HeapProfiler.collectGarbage')
      const { profile } = await session.post('HeapProfiler.getSamplingProfile')
      const body = await promisify(gzip)(encodeHeapPprof(profile, samplingInterval))
      return { status: 200, contentType: 'application/octet-stream', body }
    },
    async toggle({ query }) {
      const activate = query.get('activate')
      if (activate === 'true') {
        session ??= await startSampling()
        return plain(200, 'heap profiling is active\n')
      }
      if (activate === 'false') {
        session?.disconnect()
        session = undefined
        return plain(200, 'heap profiling is not active\n')
      }
      return plain(400, 'invalid activate value; expected true or false\n')
    },
  }
}

async function startSampling(): Promise<Session> {
  // Loaded when asked for: profiles are rare, and every node has this process.
  const inspector = await import('node:inspector/promises')
  const session = new inspector.Session()
  session.connect()
  await session.post('HeapProfiler.startSampling', { samplingInterval })
  return session
}

const plain = (status: number, body: string): HttpAnswer => ({ status, contentType: 'text/plain; charset=utf-8', body })
