// GET /debug/pprof/profile: samples the process's CPU use for some seconds.
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { Handle, HttpAnswer } from './http-server.ts'
import { encodePprof } from './pprof.ts'

/** One profile at a time; `seconds` 1–300 (10), `frequency` 1–1000 (100). */
export function serveCpuProfile(): Handle {
  let running = false
  return async ({ query }): Promise<HttpAnswer> => {
    const seconds = readNumber(query.get('seconds'), 10, 300)
    const frequency = readNumber(query.get('frequency'), 100, 1000)
    if (seconds === undefined) return invalid('invalid seconds value; expected 1-300')
    if (frequency === undefined) return invalid('invalid frequency value; expected 1-1000')
    if (running) throw new Error('a profile is being taken already')
    running = true
    // Loaded when asked for: profiles are rare, and every node has this process.
    const { Session } = await import('node:inspector/promises')
    const session = new Session()
    try {
      session.connect()
      await session.post('Profiler.enable')
      await session.post('Profiler.setSamplingInterval', { interval: Math.round(1e6 / frequency) })
      await session.post('Profiler.start')
      await delay(seconds * 1000, undefined, { ref: false })
      const { profile } = await session.post('Profiler.stop')
      const body = await promisify(gzip)(encodePprof(profile, Math.round(1e9 / frequency)))
      return { status: 200, contentType: 'application/octet-stream', body }
    } finally {
      session.disconnect()
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
