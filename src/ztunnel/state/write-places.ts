// Lists of places in shared memory, as they change with what they point to.
import type { Transaction } from '../../shared-memory/index.ts'
import { placesOf } from './tables.ts'

/** The new place, 0 for none, takes the position of the old one. */
export function replacePlace(transaction: Transaction, table: number, key: string, old: number, now: number): void {
  const places = placesOf(transaction, transaction.find(table, key))
  const index = old === 0 ? -1 : places.indexOf(old)
  if (now === 0) {
    if (index >= 0) places.splice(index, 1)
  } else if (index >= 0) places[index] = now
  else places.push(now)
  putPlaces(transaction, table, key, places)
}

/** The new place, 0 for none, becomes the last. */
export function movePlace(transaction: Transaction, table: number, key: string, old: number, now: number): void {
  const places = placesOf(transaction, transaction.find(table, key)).filter((one) => one !== old && one !== now)
  if (now !== 0) places.push(now)
  putPlaces(transaction, table, key, places)
}

function putPlaces(transaction: Transaction, table: number, key: string, places: readonly number[]): void {
  if (places.length > 0) transaction.putWords(table, key, places)
  else transaction.remove(table, key)
}
