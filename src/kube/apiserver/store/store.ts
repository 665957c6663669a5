// All objects in memory, written through to the database, with one growing revision over all of them.
// Every write is synchronous: what a caller checked just before it still holds.
import type { KubeObject } from '../../../api/index.ts'
import { Database } from './database.ts'
import { Entry, serialize } from './entry.ts'
import { History, type HistoryEvent } from './history.ts'

export interface Change extends HistoryEvent {
  readonly resource: string
}

interface Shelf {
  readonly entries: Map<string, Entry>
  readonly history: History
  /** Sorted keys; rebuilt when a key came or went. */
  sorted: string[] | undefined
}

export class Store implements Disposable {
  readonly #database: Database
  readonly #shelves = new Map<string, Shelf>()
  readonly #listeners = new Set<(change: Change) => void>()
  readonly #onError: (error: unknown) => void
  #revision = 0

  /** `onError` is told what a listener threw. */
  constructor(path: string, onError: (error: unknown) => void) {
    this.#database = new Database(path)
    this.#onError = onError
    const revisions = this.#database.revisions()
    for (const [resource, revision] of revisions) {
      this.#revision = Math.max(this.#revision, revision)
      this.#shelves.set(resource, { entries: new Map(), history: new History(revision), sorted: undefined })
    }
    for (const row of this.#database.objects()) {
      const entry = new Entry(row.namespace, row.name, row.revision, row.value)
      this.#shelf(row.resource).entries.set(entry.key, entry)
    }
    // Revision 0 and an unset one mean "any" in requests.
    if (this.#revision === 0) this.#revision = 1
  }

  get revision(): number {
    return this.#revision
  }

  /** Names of the resources that were ever written. */
  get resources(): string[] {
    return [...this.#shelves.keys()]
  }

  count(resource: string): number {
    return this.#shelves.get(resource)?.entries.size ?? 0
  }

  get(resource: string, namespace: string, name: string): Entry | undefined {
    return this.#shelves.get(resource)?.entries.get(`${namespace}/${name}`)
  }

  /** In the order of namespace and name. */
  list(resource: string, namespace?: string): Entry[] {
    const shelf = this.#shelves.get(resource)
    if (shelf === undefined) return []
    shelf.sorted ??= [...shelf.entries.keys()].sort()
    const prefix = namespace === undefined || namespace === '' ? '' : `${namespace}/`
    const found: Entry[] = []
    for (const key of shelf.sorted) {
      if (!key.startsWith(prefix)) continue
      const entry = shelf.entries.get(key)
      if (entry !== undefined) found.push(entry)
    }
    return found
  }

  /** The list as it was at a past revision; undefined when that is no longer known. */
  listAt(resource: string, revision: number, namespace?: string): Entry[] | undefined {
    const { history, entries } = this.#shelf(resource)
    if (revision < history.compacted) return undefined
    const past = new Map<string, Entry>()
    const changed = new Set<string>()
    for (const { entry, previous } of history.backTo(revision)) {
      changed.add(entry.key)
      if (previous === undefined) past.delete(entry.key)
      else past.set(entry.key, previous)
    }
    if (changed.size === 0) return this.list(resource, namespace)
    for (const [key, entry] of entries) if (!changed.has(key)) past.set(key, entry)
    const inNamespace = [...past.values()].filter(
      (entry) => namespace === undefined || namespace === '' || entry.namespace === namespace,
    )
    return inNamespace.sort((a, b) => (a.key < b.key ? -1 : 1))
  }

  history(resource: string): History {
    return this.#shelf(resource).history
  }

  /** Stores the object at a new revision, which is set in its metadata. */
  put(resource: string, object: KubeObject): Entry {
    const shelf = this.#shelf(resource)
    const [namespace, name] = [object.metadata.namespace ?? '', object.metadata.name]
    const revision = this.#revision + 1
    object.metadata.resourceVersion = String(revision)
    const json = serialize(object)
    this.#database.put({ resource, namespace, name, revision, value: json })
    const entry = new Entry(namespace, name, revision, json, object)
    const previous = shelf.entries.get(entry.key)
    if (previous === undefined) shelf.sorted = undefined
    shelf.entries.set(entry.key, entry)
    this.#committed(resource, shelf, {
      kind: previous === undefined ? 'added' : 'updated',
      revision,
      entry,
      ...(previous === undefined ? {} : { previous }),
    })
    return entry
  }

  /** Removes the object; returns its last state (`last`, or as stored) at the revision of the removal. */
  remove(resource: string, namespace: string, name: string, last?: KubeObject): Entry | undefined {
    const shelf = this.#shelf(resource)
    const previous = shelf.entries.get(`${namespace}/${name}`)
    if (previous === undefined) return undefined
    const revision = this.#revision + 1
    this.#database.remove({ resource, namespace, name, revision })
    const object = last ?? previous.clone()
    object.metadata.resourceVersion = String(revision)
    const entry = new Entry(namespace, name, revision, serialize(object), object)
    shelf.entries.delete(entry.key)
    shelf.sorted = undefined
    this.#committed(resource, shelf, { kind: 'deleted', revision, entry, previous })
    return entry
  }

  /** Calls back after every write, synchronously. */
  onChange(listener: (change: Change) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  [Symbol.dispose](): void {
    this.#listeners.clear()
    this.#database[Symbol.dispose]()
  }

  #committed(resource: string, shelf: Shelf, event: HistoryEvent): void {
    this.#revision = event.revision
    shelf.history.append(event)
    for (const listener of this.#listeners) {
      // The write is done: a listener that fails must not make it look failed.
      try {
        listener({ ...event, resource })
      } catch (error) {
        this.#onError(error)
      }
    }
  }

  #shelf(resource: string): Shelf {
    const known = this.#shelves.get(resource)
    if (known !== undefined) return known
    const shelf: Shelf = { entries: new Map(), history: new History(0), sorted: undefined }
    this.#shelves.set(resource, shelf)
    return shelf
  }
}
