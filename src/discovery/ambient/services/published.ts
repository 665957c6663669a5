// Of all objects that declare one host name, which are served, and which one is canonical.
import { compareText, type PublishedService, type ServiceInfo, serviceKey } from '../model.ts'

/** The winner of each namespace by service key; at most one of them is canonical. */
export function published(candidates: readonly ServiceInfo[]): [key: string, service: PublishedService][] {
  const winners = new Map<string, ServiceInfo>()
  for (const info of [...candidates].sort(byPreference)) {
    if (!winners.has(info.namespace)) winners.set(info.namespace, info)
  }
  const canonical = [...winners.values()].find((info) => info.visibility !== 'NAMESPACE')
  return [...winners.values()].map((info) => [
    serviceKey(info.namespace, info.hostname),
    { info, canonical: info === canonical },
  ])
}

/** Kubernetes Services before ServiceEntries, then the oldest, then by name. */
function byPreference(a: ServiceInfo, b: ServiceInfo): number {
  if (a.source.kind !== b.source.kind) return a.source.kind === 'Service' ? -1 : 1
  return (
    compareText(a.source.created, b.source.created) ||
    compareText(`${a.source.namespace}/${a.source.name}`, `${b.source.namespace}/${b.source.name}`)
  )
}
