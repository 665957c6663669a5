// A config source that can be replaced by another while it is followed: the old one counts until the new one has been read.
import { isDeepStrictEqual } from 'node:util'
import type { KubeObject, ObjectKey, Resource } from '../api/index.ts'
import type { Informer, ObjectChange } from '../kube/index.ts'
import { type ConfigSource, nameKey } from './source.ts'

export interface SwitchingSource extends ConfigSource {
  /**
   * Makes another source the one that counts, for all kinds at once, when it has been read; what is the same in both is no change.
   * Resolves true then, or false when a later call came before.
   */
  switchTo(next: ConfigSource): Promise<boolean>
}

interface Followed {
  /** Reads the kind from another source; the returned function makes that one count. */
  prepare(next: ConfigSource): Promise<Prepared>
}

interface Prepared {
  take(): void
  drop(): Promise<void>
}

export function createSwitchingSource(first: ConfigSource): SwitchingSource {
  const followed = new Set<Followed>()
  let current = first
  let latest = first

  return {
    informer<T extends KubeObject>(resource: Resource): Informer<T> {
      const { informer, kind } = followKind<T>(current, resource, () => followed.delete(kind))
      followed.add(kind)
      return informer
    },
    async switchTo(next) {
      latest = next
      const prepared = await Promise.all([...followed].map((kind) => kind.prepare(next)))
      if (latest !== next) {
        for (const one of prepared) await one.drop()
        return false
      }
      current = next
      for (const one of prepared) one.take()
      return true
    },
  }
}

function followKind<T extends KubeObject>(
  source: ConfigSource,
  resource: Resource,
  closed: () => void,
): { readonly informer: Informer<T>; readonly kind: Followed } {
  const listeners = new Set<(changes: readonly ObjectChange<T>[]) => void>()
  let inner = source.informer<T>(resource)
  let end = inner.subscribe(deliver)

  function deliver(changes: readonly ObjectChange<T>[]): void {
    if (changes.length > 0) for (const listener of [...listeners]) listener(changes)
  }

  function take(next: Informer<T>): void {
    const changes = differences(inner.list(), next.list(), (key) => next.get(key))
    const old = inner
    end()
    inner = next
    let isFirst = true
    end = next.subscribe((more) => {
      // What is there already has been compared.
      if (!isFirst) deliver(more)
    })
    isFirst = false
    deliver(changes)
    void old[Symbol.asyncDispose]()
  }

  return {
    kind: {
      async prepare(next) {
        const read = next.informer<T>(resource)
        await read.synced
        return { take: () => take(read), drop: async () => read[Symbol.asyncDispose]() }
      },
    },
    informer: {
      synced: inner.synced,
      get: (key) => inner.get(key),
      list: () => inner.list(),
      subscribe(listener) {
        listeners.add(listener)
        const known = inner.list()
        if (known.length > 0) listener(known.map((object) => ({ kind: 'added', object })))
        return () => listeners.delete(listener)
      },
      async [Symbol.asyncDispose]() {
        closed()
        listeners.clear()
        end()
        await inner[Symbol.asyncDispose]()
      },
    },
  }
}

function differences<T extends KubeObject>(
  before: readonly T[],
  after: readonly T[],
  now: (key: ObjectKey) => T | undefined,
): ObjectChange<T>[] {
  const known = new Map(before.map((object) => [nameKey(object.metadata), object]))
  const gone = before.filter(({ metadata }) => now(metadata) === undefined)
  return [
    ...gone.map((object) => ({ kind: 'deleted', object }) as const),
    ...after.flatMap((object): ObjectChange<T>[] => {
      const old = known.get(nameKey(object.metadata))
      if (old === undefined) return [{ kind: 'added', object }]
      return isDeepStrictEqual(old, object) ? [] : [{ kind: 'updated', object, old }]
    }),
  ]
}
