// GET /debug/pprof/heap: what memory is held by, sampled by V8 on every thread; sampling is switched on and off on its own path.
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { ProcessProfiler } from '../profiling/index.ts'
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
export function createHeapProfiling(profiler: ProcessProfiler): HeapProfiling {
  let active = false
  return {
    async profile() {
      if (!active) {
        return plain(500, 'heap profiling is not active; switch it on with /debug/pprof/heap/profiling?activate=true\n')
      }
      const body = await promisify(gzip)(encodeHeapPprof(await profiler.heapProfile(), samplingInterval))
      return { status: 200, contentType: 'application/octet-stream', body }
    },
    async toggle({ query }) {
      const activate = query.get('activate')
      if (activate === 'true') {
        await profiler.setHeapSampling(samplingInterval)
        active = true
        return plain(200, 'heap profiling is active\n')
      }
      if (activate === 'false') {
        active = false
        await profiler.setHeapSampling(undefined)
        return plain(200, 'heap profiling is not active\n')
      }
      return plain(400, 'invalid activate value; expected true or false\n')
    },
  }
}

const plain = (status: number, body: string): HttpAnswer => ({ status, contentType: 'text/plain; charset=utf-8', body })
