// The endpoints of a service as a thread has decoded them, with what was worked out from them.
import type { Endpoint } from '../model.ts'

/** The same object as long as nothing in it changes. */
export interface EndpointList extends Iterable<Endpoint> {
  /**
   * What was made from these endpoints and from `of` under the key, made when it is not there. It is forgotten when `of` becomes
   * another object.
   */
  remember<T extends object>(of: object, key: string, make: () => T): T
}

/** Beyond so many keys, or so many endpoints in all of them, all are forgotten. */
const mostRemembered = 32
const mostEndpoints = 60_000

export function createEndpointList(endpoints: readonly Endpoint[]): EndpointList {
  const most = Math.max(2, Math.min(mostRemembered, Math.floor(mostEndpoints / (endpoints.length + 1))))
  let about: object | undefined
  let remembered = new Map<string, object>()
  return {
    [Symbol.iterator]: () => endpoints[Symbol.iterator](),
    remember<T extends object>(of: object, key: string, make: () => T): T {
      if (about !== of || (remembered.size >= most && !remembered.has(key))) remembered = new Map()
      about = of
      const known = remembered.get(key) as T | undefined
      if (known !== undefined) return known
      const made = make()
      remembered.set(key, made)
      return made
    },
  }
}
