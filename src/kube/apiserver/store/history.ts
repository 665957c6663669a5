// The recent changes of one resource, for watches and for reading the past. Bounded: old changes are forgotten ("compacted").
import type { Entry } from './entry.ts'

export interface HistoryEvent {
  readonly kind: 'added' | 'updated' | 'deleted'
  readonly revision: number
  /** The object after the change; for `deleted` the last state, at the revision of the deletion. */
  readonly entry: Entry
  readonly previous?: Entry
}

const maxEvents = 8192
const alwaysKept = 1024
const maxCharacters = 32 * 1024 * 1024

export class History {
  #events: HistoryEvent[] = []
  #first = 0
  #characters = 0
  #compacted: number
  readonly #listeners = new Set<() => void>()

  /** `since`: the last revision whose changes are not known. */
  constructor(since: number) {
    this.#compacted = since
  }

  /** Changes up to this revision are forgotten: reading after an older one is refused. */
  get compacted(): number {
    return this.#compacted
  }

  append(event: HistoryEvent): void {
    this.#events.push(event)
    this.#characters += event.entry.json.length
    while (this.#length > maxEvents || (this.#length > alwaysKept && this.#characters > maxCharacters)) this.#forget()
    for (const wake of this.#listeners) wake()
  }

  /** The sequence number of the first event after the revision; undefined when that is no longer known. */
  positionAfter(revision: number): number | undefined {
    if (revision < this.#compacted) return undefined
    let [low, high] = [0, this.#events.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if ((this.#events[middle]?.revision ?? 0) <= revision) low = middle + 1
      else high = middle
    }
    return this.#first + low
  }

  /** The event with a sequence number: `end` when it has not happened yet, `gone` when it is forgotten. */
  at(position: number): HistoryEvent | 'end' | 'gone' {
    if (position < this.#first) return 'gone'
    return this.#events[position - this.#first] ?? 'end'
  }

  /** Events after the revision, newest first. */
  *backTo(revision: number): Generator<HistoryEvent> {
    for (let index = this.#events.length - 1; index >= 0; index -= 1) {
      const event = this.#events[index]
      if (event === undefined || event.revision <= revision) return
      yield event
    }
  }

  onAppend(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  get #length(): number {
    return this.#events.length
  }

  #forget(): void {
    // In blocks: shifting the array on every append would cost more than it frees.
    const block = this.#events.splice(0, Math.max(1, this.#events.length >> 3))
    this.#first += block.length
    for (const event of block) {
      this.#characters -= event.entry.json.length
      this.#compacted = event.revision
    }
  }
}
