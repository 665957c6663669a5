// GET of a collection: consistent at one revision, in pages when asked.
import { apiVersionOf, type KindDefinition } from '../../../api/index.ts'
import { type Core, present, presentJson } from '../core.ts'
import { ApiError, badRequest, expired } from '../errors.ts'
import { drained, type Exchange } from '../http/exchange.ts'
import type { Wanted } from '../http/media.ts'
import { headersOf, sendJson, sendObject } from '../http/respond.ts'
import { storageOf } from '../kinds.ts'
import type { Entry } from '../store/entry.ts'
import { tableOf } from '../tables/table.ts'
import type { Selection } from './selection.ts'
import { partialMetadata, type ViewContext } from './views.ts'

export interface ListMeta {
  readonly resourceVersion: string
  readonly continue?: string
  readonly remainingItemCount?: number
}

export interface Page {
  readonly entries: readonly Entry[]
  readonly meta: ListMeta
}

interface Continuation {
  readonly revision: number
  /** The key of the last object of the page before. */
  readonly after: string
}

/** Throws ApiError 410 when the revision that is asked for is no longer known. */
export function readPage(core: Core, kind: KindDefinition, selection: Selection, query: URLSearchParams): Page {
  const limit = limitOf(query.get('limit'))
  const token = query.get('continue') ?? ''
  const continuation = token === '' ? undefined : parseToken(token)
  const exact = query.get('resourceVersionMatch') === 'Exact' ? revisionOf(query) : undefined
  if (continuation === undefined && exact === undefined) refuseFuture(core, revisionOf(query))
  const revision = continuation?.revision ?? exact ?? core.store.revision
  const all = core.store.listAt(storageOf(kind), revision, selection.namespace)
  if (all === undefined || revision > core.store.revision) {
    throw expired('The provided continue parameter or resource version is too old or unknown; list again without it')
  }
  const left = continuation === undefined ? all : all.slice(firstAfter(all, continuation.after))
  const matching = selection.isEverything ? left : left.filter((entry) => selection.matches(entry))
  const entries = limit > 0 ? matching.slice(0, limit) : matching
  const remaining = matching.length - entries.length
  const last = entries.at(-1)
  return {
    entries,
    meta: {
      resourceVersion: String(revision),
      ...(remaining > 0 && last !== undefined ? { continue: tokenOf({ revision, after: last.key }) } : {}),
      ...(remaining > 0 && selection.isEverything ? { remainingItemCount: remaining } : {}),
    },
  }
}

function firstAfter(entries: readonly Entry[], key: string): number {
  const index = entries.findIndex((entry) => entry.key > key)
  return index < 0 ? entries.length : index
}

function limitOf(text: string | null): number {
  if (text === null || text === '') return 0
  if (!/^\d+$/.test(text)) throw badRequest(`limit: Invalid value: "${text}": must be a whole number`)
  return Number(text)
}

function revisionOf(query: URLSearchParams): number | undefined {
  const text = query.get('resourceVersion') ?? ''
  if (text === '' || text === '0') return undefined
  if (!/^\d+$/.test(text)) throw badRequest(`resourceVersion: Invalid value: "${text}": must be a number`)
  return Number(text)
}

function refuseFuture(core: Core, revision: number | undefined): void {
  if (revision === undefined || revision <= core.store.revision) return
  throw new ApiError(
    504,
    'Timeout',
    `Timeout: Too large resource version: ${revision}, current: ${core.store.revision}`,
    { causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }], retryAfterSeconds: 1 },
  )
}

function tokenOf({ revision, after }: Continuation): string {
  return Buffer.from(JSON.stringify({ v: 'meta.k8s.io/v1', rv: revision, start: after })).toString('base64url')
}

function parseToken(token: string): Continuation {
  try {
    const { rv, start } = JSON.parse(Buffer.from(token, 'base64url').toString())
    if (typeof rv === 'number' && typeof start === 'string') return { revision: rv, after: start }
  } catch {
    // Falls through to the refusal below: not a token of ours.
  }
  throw badRequest('continue key is not valid')
}

const chunkCharacters = 256 * 1024

/** Sends a page in the wanted view. Long lists are written piece by piece, at the client's pace. */
export async function sendPage(
  exchange: Exchange,
  kind: KindDefinition,
  page: Page,
  context: ViewContext,
): Promise<void> {
  const { wanted } = context
  if (wanted.view === 'table') {
    const objects = page.entries.map((entry) => present(kind, entry))
    return sendObject(exchange, 200, tableOf(context, objects, page.meta), wanted.format)
  }
  if (wanted.format === 'yaml') return sendObject(exchange, 200, plainList(kind, page, wanted), 'yaml')
  const head = JSON.stringify(listHead(kind, page.meta, wanted)).slice(0, -1)
  const item = (entry: Entry) =>
    wanted.view === 'object'
      ? presentJson(kind, entry)
      : JSON.stringify(partialMetadata(entry.object, wanted.metaVersion))
  await sendPieces(exchange, `${head},"items":[`, page.entries, item)
}

function listHead(
  kind: KindDefinition,
  meta: ListMeta,
  wanted: Wanted,
): { kind: string; apiVersion: string; metadata: ListMeta } {
  return wanted.view === 'metadata'
    ? { kind: 'PartialObjectMetadataList', apiVersion: `meta.k8s.io/${wanted.metaVersion}`, metadata: meta }
    : { kind: kind.listKind, apiVersion: apiVersionOf(kind), metadata: meta }
}

function plainList(kind: KindDefinition, page: Page, wanted: Wanted): unknown {
  const items = page.entries.map((entry) =>
    wanted.view === 'object' ? present(kind, entry) : partialMetadata(entry.object, wanted.metaVersion),
  )
  return { ...listHead(kind, page.meta, wanted), items }
}

async function sendPieces(
  exchange: Exchange,
  head: string,
  entries: readonly Entry[],
  item: (entry: Entry) => string,
): Promise<void> {
  const { response } = exchange
  let piece = head
  let isStarted = false
  for (const [index, entry] of entries.entries()) {
    piece += index === 0 ? item(entry) : `,${item(entry)}`
    if (piece.length < chunkCharacters) continue
    if (!isStarted) response.writeHead(200, headersOf(exchange, 'application/json'))
    isStarted = true
    if (!response.write(piece)) await drained(response)
    if (response.destroyed === true) return
    piece = ''
  }
  piece += ']}'
  if (!isStarted) return sendJson(exchange, 200, piece)
  response.end(piece)
}
