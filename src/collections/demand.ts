// On-demand collections: values exist while a lease or a reader holds their key.
import { createRuns } from './derived.ts'
import type { GraphEngine } from './engine.ts'
import type { OnDemandOptions } from './options.ts'
import { erased, Store } from './store.ts'
import type { Lease, OnDemandCollection, ReadContext } from './types.ts'

export function createDemand<O>(
  graph: GraphEngine,
  name: string,
  compute: (context: ReadContext, key: string) => O | undefined,
  options: OnDemandOptions<O>,
): Store<O> & OnDemandCollection<O> {
  const keepIdle = options.keepIdle ?? 0
  const leases = new Map<string, number>()
  const started = new Set<string>()
  /** Keys that nobody holds, the longest unused first. */
  const idle = new Set<string>()
  let sweepPlanned = false

  const store: Store<O> = new Store<O>(graph, name, {
    kind: 'on-demand',
    equals: options.equals,
    settle: (shouldPause) => runs.settle(shouldPause),
    materialize: (key) => materialize(key),
    released: () => planSweep(),
  })
  const runs = createRuns(graph, erased(store), {
    source: undefined,
    onDemand: true,
    compute: (context, key) => store.write(key, compute(context, key)),
    dropped: (key) => store.write(key, undefined),
  })
  const materialize = (key: string): void => {
    idle.delete(key)
    if (started.has(key)) return
    started.add(key)
    runs.start(key)
  }
  const planSweep = (): void => {
    if (sweepPlanned) return
    sweepPlanned = true
    graph.afterWave(sweep)
  }
  const sweep = (): void => {
    sweepPlanned = false
    for (const key of started) {
      if (leases.has(key) || store.keyReaders.has(key)) idle.delete(key)
      else idle.add(key)
    }
    for (const key of idle) {
      if (idle.size <= keepIdle) return
      idle.delete(key)
      started.delete(key)
      runs.stop(key)
    }
  }
  const acquire = (key: string): Lease<O> => {
    graph.compute(() => {
      leases.set(key, (leases.get(key) ?? 0) + 1)
      materialize(key)
    })
    let open = true
    const close = (): void => {
      if (!open) return
      open = false
      const left = (leases.get(key) ?? 1) - 1
      if (left > 0) leases.set(key, left)
      else leases.delete(key)
      if (left === 0) graph.transaction(planSweep)
    }
    return {
      key,
      get value() {
        return store.get(key)
      },
      close,
      [Symbol.dispose]: close,
    }
  }
  return Object.assign(store, { acquire })
}
