// Forgets Events some time after they were last seen: they tell what happened lately and would fill the state otherwise.
import type { Core } from '../core.ts'
import { valueAt } from '../json.ts'
import type { ApiCore } from '../types.ts'

const keptMs = 60 * 60_000
const intervalMs = 60_000

/** Returns the function that stops it. */
export function startEventExpiry(core: Core, api: ApiCore, onError: (error: unknown) => void): () => Promise<void> {
  let running: Promise<void> = Promise.resolve()
  const timer = setInterval(() => {
    running = expireEvents(api, core.now()).catch(onError)
  }, intervalMs)
  return async () => {
    clearInterval(timer)
    await running
  }
}

/** Deletes the Events that were last seen too long before `now`. */
export async function expireEvents(api: ApiCore, now: Date): Promise<void> {
  const kind = api.kinds.find('', 'v1', 'events')
  if (kind === undefined) return
  const oldest = now.getTime() - keptMs
  for (const object of api.objects.list('', 'events')) {
    const times = [
      object.metadata.creationTimestamp,
      valueAt(object, ['lastTimestamp']),
      valueAt(object, ['eventTime']),
      valueAt(object, ['series', 'lastObservedTime']),
    ]
    const lastSeen = Math.max(...times.map((time) => (typeof time === 'string' ? Date.parse(time) || 0 : 0)))
    if (lastSeen < oldest) await api.delete(kind, object.metadata)
  }
}
