// What the index cannot take as it is meant, in the log.
import type { Collection } from '../collections/index.ts'
import type { AmbientIndex } from '../discovery/ambient/index.ts'
import type { Scope } from '../observability/index.ts'

/** Begins with what is so at present: call it once everything is read, since before that things only seem to be missing. */
export function logIndexWarnings(
  index: Pick<AmbientIndex, 'unusedGateways' | 'invalidPolicyValues' | 'differingPorts'>,
  log: Pick<Scope, 'warn'>,
): () => void {
  const ends = [
    each(index.unusedGateways, (_, unused) =>
      log.warn('a gateway of mesh networks is not used by node proxies', { ...unused }),
    ),
    each(index.invalidPolicyValues, (key, values) =>
      log.warn('values of an AuthorizationPolicy cannot be read', {
        policy: key.slice(key.indexOf('/') + 1),
        values: values.join('; '),
      }),
    ),
    each(index.differingPorts, (service, clusters) =>
      log.warn('a service has other ports in other clusters; those here count', {
        service,
        clusters: clusters.join(' '),
      }),
    ),
  ]
  return () => {
    for (const end of ends) end()
  }
}

function each<T>(collection: Collection<T>, told: (key: string, value: T) => void): () => void {
  return collection.subscribe((changes) => {
    for (const change of changes) if (change.kind !== 'removed') told(change.key, change.new)
  })
}
