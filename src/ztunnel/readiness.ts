// What must be done before the proxy says that it is ready.

export interface Readiness {
  /** A task that is not done; the returned function tells when it is, and when it no longer is. */
  task(name: string): (done: boolean) => void
  /** Names of tasks not done, sorted. Empty: ready. */
  pending(): readonly string[]
}

/** `onChange` is told what is pending, whenever a task is added, done or no longer done. */
export function createReadiness(onChange: (pending: readonly string[]) => void = () => undefined): Readiness {
  const tasks = new Map<string, boolean>()
  const set = (name: string, done: boolean): void => {
    if (tasks.get(name) === done) return
    tasks.set(name, done)
    onChange(readiness.pending())
  }
  const readiness: Readiness = {
    task(name) {
      set(name, false)
      return (done) => set(name, done)
    },
    pending: () => [...tasks].flatMap(([name, done]) => (done ? [] : [name])).sort(),
  }
  return readiness
}
