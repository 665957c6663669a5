// Profiles of the thread that asks: V8 samples each thread by itself.

import type { HeapProfiler, Profiler, Session } from 'node:inspector/promises'
import { setTimeout as delay } from 'node:timers/promises'

export interface ThreadProfiler {
  /** Samples the thread's use of the processor for some seconds, `frequency` times a second. */
  sampleCpu(options: { readonly seconds: number; readonly frequency: number }): Promise<Profiler.Profile>
  /** Samples allocations, one in so many bytes on average, until it is called with nothing. */
  setHeapSampling(intervalBytes: number | undefined): Promise<void>
  /** What memory is held by of what was allocated since. Rejects while nothing is sampled. */
  heapProfile(): Promise<HeapProfiler.SamplingHeapProfile>
}

export function createThreadProfiler(): ThreadProfiler {
  let sampling: Session | undefined
  return {
    async sampleCpu({ seconds, frequency }) {
      const session = await openSession()
      try {
        await session.post('Profiler.enable')
        await session.post('Profiler.setSamplingInterval', { interval: Math.round(1e6 / frequency) })
        await session.post('Profiler.start')
        await delay(seconds * 1000, undefined, { ref: false })
        return (await session.post('Profiler.stop')).profile
      } finally {
        session.disconnect()
      }
    },
    async setHeapSampling(intervalBytes) {
      if (intervalBytes === undefined) {
        sampling?.disconnect()
        sampling = undefined
        return
      }
      if (sampling !== undefined) return
      const session = await openSession()
      sampling = session
      await session.post('HeapProfiler.startSampling', { samplingInterval: intervalBytes })
    },
    async heapProfile() {
      if (sampling === undefined) throw new Error('allocations are not sampled')
      // What is garbage already holds nothing.
      await sampling.post('HeapProfiler.collectGarbage')
      return (await sampling.post('HeapProfiler.getSamplingProfile')).profile
    },
  }
}

async function openSession(): Promise<Session> {
  // Loaded when asked for: profiles are rare, and every node has this process.
  const { Session } = await import('node:inspector/promises')
  const session = new Session()
  session.connect()
  return session
}
