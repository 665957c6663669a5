// What must be done before the proxy says that it is ready.

export interface Readiness {
  /** A task that is not done; the returned function tells when it is, and when it no longer is. */
  task(name: string): (done: boolean) => void
  /** Names of tasks not done, sorted. Empty: ready. */
  pending(): readonly string[]
}

export function createReadiness(): Readiness {
  const tasks = new Map<string, boolean>()
  return {
    task(name) {
      tasks.set(name, false)
      return (done) => void tasks.set(name, done)
    },
    pending: () => [...tasks].flatMap(([name, done]) => (done ? [] : [name])).sort(),
  }
}
