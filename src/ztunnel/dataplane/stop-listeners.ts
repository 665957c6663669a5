// Who is told when a pod's proxy stops. Every open connection is among them, and a signal goes through all of its own listeners for
// each that is added or removed: it has one, which calls these.

const listenersOf = new WeakMap<AbortSignal, Set<() => void>>()

/** Calls the listener once the signal aborts, now if it has. Returns the function that ends that. */
export function onStop(stopping: AbortSignal, listener: () => void): () => void {
  if (stopping.aborted) {
    listener()
    return () => undefined
  }
  const listeners = listenersOf.get(stopping) ?? follow(stopping)
  listeners.add(listener)
  return () => void listeners.delete(listener)
}

function follow(stopping: AbortSignal): Set<() => void> {
  const listeners = new Set<() => void>()
  listenersOf.set(stopping, listeners)
  stopping.addEventListener(
    'abort',
    () => {
      for (const listener of listeners) listener()
    },
    { once: true },
  )
  return listeners
}
