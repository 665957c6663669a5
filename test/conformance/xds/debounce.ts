// Cases about bursts: how often what comes quickly is pushed. Endpoint changes that are not to wait have a lane of their own.
import { createPushLane } from '../../../src/xds/index.ts'

export interface DebounceOptions {
  readonly debounceAfterMs: number
  readonly debounceMaxMs: number
  readonly edsDebounce: boolean
  readonly pushDurationMs: number
}

export interface DebounceCase {
  readonly events: readonly { readonly atMs: number; readonly endpointsOnly?: boolean }[]
}

export async function countPushes(options: DebounceOptions, { events }: DebounceCase): Promise<object> {
  let pushing = false
  let overlapping = false
  let endpointPushes = 0
  let fullPushes = 0
  const push = (count: () => void) => (): void => {
    if (pushing) overlapping = true
    pushing = true
    count()
    pushing = false
  }
  const full = createPushLane(
    { afterMs: options.debounceAfterMs, maxMs: options.debounceMaxMs },
    push(() => {
      fullPushes += 1
    }),
  )
  const endpoints = options.edsDebounce
    ? full
    : createPushLane(
        { afterMs: 0, maxMs: 0 },
        push(() => {
          endpointPushes += 1
        }),
      )
  const started = performance.now()
  for (const [index, { atMs, endpointsOnly }] of events.entries()) {
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, atMs - (performance.now() - started))))
    const lane = endpointsOnly === true ? endpoints : full
    lane.add('a.B', [{ name: `r${index}` }])
  }
  await new Promise((resolve) => setTimeout(resolve, options.debounceMaxMs + options.debounceAfterMs))
  full.close()
  endpoints.close()
  return { endpointPushes, fullPushes, overlapping }
}
