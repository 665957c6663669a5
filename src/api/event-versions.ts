// Events are served by two groups; they are stored as core/v1 Events.
import type { KubeObject } from './objects.ts'

type Fields = Record<string, unknown>

const renames: readonly (readonly [string, string])[] = [
  ['regarding', 'involvedObject'],
  ['note', 'message'],
  ['reportingController', 'reportingComponent'],
  ['reportingInstance', 'reportingInstance'],
  ['deprecatedSource', 'source'],
  ['deprecatedFirstTimestamp', 'firstTimestamp'],
  ['deprecatedLastTimestamp', 'lastTimestamp'],
  ['deprecatedCount', 'count'],
]

/** From events.k8s.io/v1 to v1. */
export function eventToStorage(event: KubeObject): KubeObject {
  return renamed(event, 'v1', new Map(renames))
}

/** From v1 to events.k8s.io/v1. */
export function eventFromStorage(event: KubeObject): KubeObject {
  return renamed(event, 'events.k8s.io/v1', new Map(renames.map(([to, from]) => [from, to])))
}

function renamed(event: KubeObject, apiVersion: string, names: ReadonlyMap<string, string>): KubeObject {
  const fields = Object.entries(event as unknown as Fields).map(([name, value]) => [names.get(name) ?? name, value])
  return { ...(Object.fromEntries(fields) as unknown as KubeObject), apiVersion }
}
