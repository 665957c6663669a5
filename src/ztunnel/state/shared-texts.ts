// Texts that many workloads have in common, stored once: who uses them is counted, and what nobody uses goes.
import type { Transaction } from '../../shared-memory/index.ts'
import { tables } from './tables.ts'

export interface SharedTexts {
  /** The place of the text, which is put there when it is not; one more uses it. */
  use(transaction: Transaction, text: string): number
  /** One fewer uses it. */
  leave(place: number): void
  /** At the end of a push: takes away what nobody uses any more. */
  sweep(transaction: Transaction): void
  /** The push is in place. */
  commit(): void
  /** The push is not: everything counts as before. */
  abort(): void
}

const nothing = new Uint8Array()

export function createSharedTexts(): SharedTexts {
  const users = new Map<number, number>()
  /** By how many more or fewer each is used in the push that is being written. */
  const changes = new Map<number, number>()

  const change = (place: number, by: number): void => void changes.set(place, (changes.get(place) ?? 0) + by)
  const usersAfter = (place: number, by: number): number => (users.get(place) ?? 0) + by

  return {
    use(transaction, text) {
      const known = transaction.find(tables.texts, text)
      const place = known === 0 ? transaction.put(tables.texts, text, nothing) : known
      change(place, 1)
      return place
    },
    leave: (place) => change(place, -1),
    sweep(transaction) {
      for (const [place, by] of changes) {
        if (usersAfter(place, by) === 0) transaction.remove(tables.texts, transaction.keyOf(place))
      }
    },
    commit() {
      for (const [place, by] of changes) {
        const now = usersAfter(place, by)
        if (now === 0) users.delete(place)
        else users.set(place, now)
      }
      changes.clear()
    },
    abort: () => changes.clear(),
  }
}
