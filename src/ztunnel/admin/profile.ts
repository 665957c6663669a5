// GET /debug/pprof/profile: samples the CPU use of every thread for some seconds.
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { ProcessProfiler } from '../profiling/index.ts'
import type { Handle, HttpAnswer } from './http-server.ts'
import { encodePprof } from './pprof.ts'

/** One profile at a time; `seconds` 1–300 (10), `frequency` 1–1000 (100). */
export function serveCpuProfile(profiler: ProcessProfiler): Handle {
  let running = false
  return async ({ query }): Promise<HttpAnswer> => {
    const seconds = readNumber(query.get('seconds'), 10, 300)
    const frequency = readNumber(query.get('frequency'), 100, 1000)
    if (seconds === undefined) return invalid('invalid seconds value; expected 1-300')
    if (frequency === undefined) return invalid('invalid frequency value; expected 1-1000')
    if (running) throw new Error('a profile is being taken already')
    running = true
    try {
      const profiles = await profiler.sampleCpu({ seconds, frequency })
      const body = await promisify(gzip)(encodePprof(profiles, Math.round(1e9 / frequency)))
      return { status: 200, contentType: 'application/octet-stream', body }
    } finally {
      running = false
    }
  }
}

const invalid = (message: string): HttpAnswer => ({
  status: 400,
  contentType: 'text/plain; charset=utf-8',
  body: `${message}\n`,
})

function readNumber(text: string | null, otherwise: number, max: number): number | undefined {
  if (text === null) return otherwise
  const number = Number(text)
  return /^\d+$/.test(text) && number >= 1 && number <= max ? number : undefined
}
