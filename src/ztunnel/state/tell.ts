// Telling listeners that something has happened: one that throws neither undoes it nor keeps the others from being told.

/** What becomes of the error of a listener. */
export type ListenerFailure = (error: unknown) => void

/** Ends the process, as an error that nobody catches does, but not before the others are told. */
export const failLater: ListenerFailure = (error) =>
  process.nextTick(() => {
    throw error
  })

/** Calls those that are listeners now. */
export function tell<T>(listeners: Iterable<(value: T) => void>, value: T, onFailure: ListenerFailure): void {
  for (const listener of [...listeners]) {
    try {
      listener(value)
    } catch (error) {
      onFailure(error)
    }
  }
}
