// Kinds of configuration that the API server is not asked for, because the operator says so.
import type { KubeObject, Resource } from '../api/index.ts'
import type { Informer, KubeClient } from '../kube/index.ts'

export interface KindChoice {
  /** Names of CRDs, `<plural>.<group>`, where `*` stands for any text. */
  readonly ignore: readonly string[]
  /** Those that are read although they are among the ignored. */
  readonly include: readonly string[]
}

/** Of the kinds, those that are not to be read. */
export function ignoredKinds<R extends Resource>(kinds: readonly R[], { ignore, include }: KindChoice): readonly R[] {
  const ignored = ignore.map(patternOf)
  const included = include.map(patternOf)
  return kinds.filter((kind) => {
    const name = nameOf(kind)
    return ignored.some((pattern) => pattern.test(name)) && !included.some((pattern) => pattern.test(name))
  })
}

/** A client to which these kinds have no objects, whose informers ask nobody. */
export function ignoring(client: KubeClient, kinds: readonly Resource[]): KubeClient {
  if (kinds.length === 0) return client
  const names = new Set(kinds.map(nameOf))
  return {
    ...client,
    informer: <T extends KubeObject>(...[resource, options]: Parameters<typeof client.informer<T>>): Informer<T> =>
      names.has(nameOf(resource)) ? withoutObjects() : client.informer<T>(resource, options),
  }
}

export function nameOf({ plural, group }: Resource): string {
  return `${plural}.${group}`
}

function patternOf(glob: string): RegExp {
  const parts = glob.split('*').map((part) => part.replace(/[^a-z0-9-]/gi, '\\$&'))
  return new RegExp(`^${parts.join('.*')}$`)
}

function withoutObjects<T extends KubeObject>(): Informer<T> {
  return {
    synced: Promise.resolve(),
    get: () => undefined,
    list: () => [],
    subscribe: () => () => {},
    [Symbol.asyncDispose]: async () => {},
  }
}
