// Profiles of all threads of the process together.
import type { HeapProfiler, Profiler } from 'node:inspector/promises'
import { createThreadProfiler, type ThreadProfiler } from './thread-profiler.ts'

/** A profile, and the thread it was taken of. */
export interface OfThread<T> {
  readonly thread: string
  readonly profile: T
}

export interface ProcessProfiler {
  sampleCpu(options: {
    readonly seconds: number
    readonly frequency: number
  }): Promise<readonly OfThread<Profiler.Profile>[]>
  setHeapSampling(intervalBytes: number | undefined): Promise<void>
  heapProfile(): Promise<readonly OfThread<HeapProfiler.SamplingHeapProfile>[]>
}

/** `workers`: the profilers of other threads by name. A thread that does not answer is left out of a profile. */
export function createProcessProfiler(workers: ReadonlyMap<string, ThreadProfiler> = new Map()): ProcessProfiler {
  const threads = new Map([['main', createThreadProfiler()], ...workers])

  async function ofEach<T>(take: (profiler: ThreadProfiler) => Promise<T>): Promise<OfThread<T>[]> {
    const profiles = [...threads].map(async ([thread, profiler]) => ({ thread, profile: await take(profiler) }))
    const [main, ...others] = await Promise.allSettled(profiles)
    if (main?.status === 'rejected') throw main.reason
    return [main, ...others].flatMap((one) => (one?.status === 'fulfilled' ? [one.value] : []))
  }

  return {
    sampleCpu: (options) => ofEach((profiler) => profiler.sampleCpu(options)),
    async setHeapSampling(intervalBytes) {
      await ofEach((profiler) => profiler.setHeapSampling(intervalBytes))
    },
    heapProfile: () => ofEach((profiler) => profiler.heapProfile()),
  }
}
