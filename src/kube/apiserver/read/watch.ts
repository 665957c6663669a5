// Watches: a client follows the changes of a collection at its own pace.
// A watch holds no queue: it has a place in the shared history, and ends with 410 when the history forgets that place.
import { apiVersionOf, type KindDefinition } from '../../../api/index.ts'
import type { Core } from '../core.ts'
import { ApiError, expired, invalid } from '../errors.ts'
import type { Exchange } from '../http/exchange.ts'
import { headersOf } from '../http/respond.ts'
import { storageOf } from '../kinds.ts'
import { isTrue } from '../path.ts'
import { Entry, serialize } from '../store/entry.ts'
import type { History, HistoryEvent } from '../store/history.ts'
import type { Selection } from './selection.ts'
import { type ViewContext, viewEntry } from './views.ts'

const bookmarkIntervalMs = 60_000
const defaultTimeoutMs = 30 * 60_000
/** Events written before the event loop gets a turn. */
const burst = 512

export function serveWatch(
  core: Core,
  exchange: Exchange,
  kind: KindDefinition,
  selection: Selection,
  context: ViewContext,
  closing: AbortSignal,
): void {
  const query = exchange.url.searchParams
  const start = startOf(core, query)
  const { response } = exchange
  response.writeHead(200, headersOf(exchange, 'application/json'))
  response.flushHeaders()
  const watch = new Watch(core, exchange, kind, selection, context)
  closing.addEventListener('abort', watch.stop)
  response.on('close', () => closing.removeEventListener('abort', watch.stop))
  watch.start(start, isTrue(query.get('allowWatchBookmarks')), timeoutOf(query))
}

interface Start {
  /** Changes after this revision are sent; the objects at it first, when `initial`. */
  readonly revision: number
  readonly initial: boolean
  /** Marks the end of the initial objects with a bookmark. */
  readonly announced: boolean
}

function startOf(core: Core, query: URLSearchParams): Start {
  const text = query.get('resourceVersion') ?? ''
  const asked = query.get('sendInitialEvents')
  if (text !== '' && !/^\d+$/.test(text)) {
    throw new ApiError(400, 'BadRequest', `resourceVersion: Invalid value: "${text}": must be a number`)
  }
  if (asked !== null && query.get('resourceVersionMatch') !== 'NotOlderThan') {
    throw invalid({ group: 'meta.k8s.io', kind: 'ListOptions' }, '', [
      {
        reason: 'FieldValueForbidden',
        field: 'resourceVersionMatch',
        message: 'Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan',
      },
    ])
  }
  const now = core.store.revision
  if (isTrue(asked)) {
    if (Number(text) > now) throw expired(`too large resource version: ${text} (${now})`)
    return { revision: now, initial: true, announced: true }
  }
  if (text === '' || text === '0') return { revision: now, initial: asked === null, announced: false }
  return { revision: Number(text), initial: false, announced: false }
}

function timeoutOf(query: URLSearchParams): number {
  const seconds = Number(query.get('timeoutSeconds') ?? '')
  // Spread, so that clients that came together do not come again together.
  return seconds > 0 ? seconds * 1000 : defaultTimeoutMs * (1 + Math.random())
}

class Watch {
  readonly #core: Core
  readonly #exchange: Exchange
  readonly #kind: KindDefinition
  readonly #selection: Selection
  readonly #context: ViewContext
  readonly #history: History
  #initial: { readonly entries: readonly Entry[]; next: number; readonly announced: boolean } | undefined
  #position = 0
  #revision = 0
  #state: 'idle' | 'scheduled' | 'blocked' | 'closed' = 'idle'
  readonly #release: (() => void)[] = []

  constructor(core: Core, exchange: Exchange, kind: KindDefinition, selection: Selection, context: ViewContext) {
    this.#core = core
    this.#exchange = exchange
    this.#kind = kind
    this.#selection = selection
    this.#context = context
    this.#history = core.store.history(storageOf(kind))
  }

  start(start: Start, bookmarks: boolean, timeoutMs: number): void {
    const position = this.#history.positionAfter(start.revision)
    if (start.revision > this.#core.store.revision || (position === undefined && !start.initial)) {
      this.#fail(expired(`too old resource version: ${start.revision} (${this.#history.compacted})`))
      return
    }
    const { response } = this.#exchange
    this.#revision = start.revision
    this.#position = this.#history.positionAfter(this.#core.store.revision) ?? 0
    if (!start.initial) this.#position = position ?? this.#position
    else {
      const entries = this.#core.store.list(storageOf(this.#kind), this.#selection.namespace)
      this.#initial = { entries, next: 0, announced: start.announced }
    }
    this.#release.push(this.#history.onAppend(() => this.#schedule()))
    const timeout = setTimeout(() => this.#finish(bookmarks), Math.min(timeoutMs, 2 ** 31 - 1))
    this.#release.push(() => clearTimeout(timeout))
    if (bookmarks) {
      const timer = setInterval(() => this.#bookmark(), bookmarkIntervalMs)
      this.#release.push(() => clearInterval(timer))
    }
    response.on('close', this.stop)
    response.on('drain', () => {
      if (this.#state !== 'blocked') return
      this.#state = 'idle'
      this.#schedule()
    })
    this.#pump()
  }

  /** Ends the watch as a server that goes away does: the stream just ends. */
  readonly stop = (): void => {
    if (this.#state === 'closed') return
    this.#state = 'closed'
    for (const release of this.#release) release()
    this.#exchange.response.end()
  }

  #schedule(): void {
    if (this.#state !== 'idle') return
    this.#state = 'scheduled'
    setImmediate(() => {
      if (this.#state !== 'scheduled') return
      this.#state = 'idle'
      this.#pump()
    })
  }

  /** Writes what is new until the client can't take more. */
  #pump(): void {
    let text = ''
    for (let count = 0; count < burst; count += 1) {
      const next = this.#next()
      if (next === 'end') {
        this.#write(text)
        return
      }
      if (next === 'gone') {
        this.#write(text)
        this.#fail(expired('too old resource version: the watch was too slow'))
        return
      }
      text += next
      if (text.length < 64 * 1024) continue
      if (!this.#write(text)) return
      text = ''
    }
    if (this.#write(text)) this.#schedule()
  }

  /** The next piece of the stream: an event, or nothing for one that does not concern this watch. */
  #next(): string | 'end' | 'gone' {
    const initial = this.#initial
    if (initial !== undefined) {
      const entry = initial.entries[initial.next]
      initial.next += 1
      if (entry !== undefined) return this.#selection.matches(entry) ? this.#event('ADDED', entry) : ''
      this.#initial = undefined
      return initial.announced ? this.#bookmarkText({ 'k8s.io/initial-events-end': 'true' }) : ''
    }
    const event = this.#history.at(this.#position)
    if (event === 'end' || event === 'gone') return event
    this.#position += 1
    this.#revision = event.revision
    return this.#changeText(event)
  }

  #changeText({ kind, entry, previous, revision }: HistoryEvent): string {
    const { namespace } = this.#selection
    if (namespace !== undefined && namespace !== '' && entry.namespace !== namespace) return ''
    const was = previous !== undefined && this.#selection.matches(previous)
    const is = kind !== 'deleted' && this.#selection.matches(entry)
    if (is) return this.#event(was ? 'MODIFIED' : 'ADDED', entry)
    if (!was) return ''
    if (kind === 'deleted') return this.#event('DELETED', entry)
    // It left the selection: shown as it was last selected, at the revision of the change.
    const last = previous.clone()
    last.metadata.resourceVersion = String(revision)
    return this.#event('DELETED', new Entry(entry.namespace, entry.name, revision, serialize(last), last))
  }

  #event(type: 'ADDED' | 'MODIFIED' | 'DELETED', entry: Entry): string {
    return `{"type":"${type}","object":${viewEntry(this.#context, entry)}}\n`
  }

  #bookmarkText(annotations?: Record<string, string>): string {
    const metadata = {
      resourceVersion: String(this.#revision),
      creationTimestamp: null,
      ...(annotations === undefined ? {} : { annotations }),
    }
    const { kind, wanted } = this.#context
    const object =
      wanted.view === 'metadata'
        ? { kind: 'PartialObjectMetadata', apiVersion: `meta.k8s.io/${wanted.metaVersion}`, metadata }
        : wanted.view === 'table'
          ? {
              kind: 'Table',
              apiVersion: `meta.k8s.io/${wanted.metaVersion}`,
              metadata: { resourceVersion: metadata.resourceVersion },
              columnDefinitions: [],
              rows: [
                {
                  cells: [],
                  object: {
                    kind: 'PartialObjectMetadata',
                    apiVersion: `meta.k8s.io/${wanted.metaVersion}`,
                    metadata,
                  },
                },
              ],
            }
          : { kind: kind.kind, apiVersion: apiVersionOf(kind), metadata }
    return `${JSON.stringify({ type: 'BOOKMARK', object })}\n`
  }

  #bookmark(): void {
    if (this.#state !== 'idle' || this.#initial !== undefined) return
    // All that happened so far has been sent: the whole store's revision can be named.
    if (this.#history.at(this.#position) !== 'end') return
    this.#revision = this.#core.store.revision
    this.#write(this.#bookmarkText())
  }

  #finish(bookmarks: boolean): void {
    if (bookmarks) this.#bookmark()
    this.stop()
  }

  #write(text: string): boolean {
    if (this.#state === 'closed') return false
    if (text === '' || this.#exchange.response.write(text)) return true
    this.#state = 'blocked'
    return false
  }

  #fail(error: ApiError): void {
    this.#exchange.response.write(`${JSON.stringify({ type: 'ERROR', object: error.toStatus() })}\n`)
    this.stop()
  }
}
