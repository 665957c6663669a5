// The revocation lists in force, read from a file and read again when it changes.
import type { X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { parseRevocationLists, type RevocationList } from '../../ca/revocation/index.ts'
import { type Clock, systemClock } from './clock.ts'
import { judgeChain, type RevocationVerdict } from './revocation-verdict.ts'

export interface RevocationsOptions {
  readonly path: string
  /** What holds while the file has never been readable as a list: `open` lets every certificate pass, `closed` none. */
  readonly whenInvalid: 'open' | 'closed'
  readonly clock?: Clock
  readonly warn?: (message: string) => void
}

/** What is known of the lists; can be posted to another thread. */
export type RevocationSource =
  | { readonly kind: 'lists'; readonly bytes: Uint8Array }
  | { readonly kind: 'invalid'; readonly reason: string }

export interface Revocations extends AsyncDisposable {
  /** `invalid`: the file was never readable as a list; an operator must be told. */
  readonly state: 'enforcing' | 'invalid'
  /** Grows with each change: a connection registered between two checks compares it and checks again. */
  readonly generation: number
  /** How many certificates the lists name. */
  readonly revoked: number
  /** The lists in force as they were read; with the reason instead while none could be. */
  readonly source: RevocationSource
  /**
   * Checks a peer's chain, leaf first. `known`: our own intermediates and roots, to continue a chain of which only a part is seen
   * (a server sees no more than the client's leaf).
   */
  check(chain: readonly X509Certificate[], known: readonly X509Certificate[]): RevocationVerdict
  /** Called after each change. Returns the function that ends the subscription. */
  subscribe(listener: () => void): () => void
  /** Reads the file now; resolves when what it says is in force, or was put off. */
  reload(): Promise<void>
  close(): void
}

const checkIntervalMs = 2_000

/**
 * Reads the file and follows it. An absent or empty file revokes nothing; after lists were in force not before it is found so twice, as
 * it may be in the middle of being written.
 */
export async function openRevocations(options: RevocationsOptions): Promise<Revocations> {
  const { path, whenInvalid, clock = systemClock, warn } = options
  const listeners = new Set<() => void>()
  let lists: readonly RevocationList[] | undefined
  let reason = ''
  let seen: string | undefined
  let inForce: Buffer = Buffer.alloc(0)
  let wasEmpty = false
  let generation = 0
  let timer: unknown
  let isClosed = false

  async function reload(): Promise<void> {
    let bytes: Buffer
    try {
      bytes = await readIfPresent(path)
      const text = bytes.toString('base64')
      const isFirstEmpty = bytes.length === 0 && inForce.length > 0 && !wasEmpty
      wasEmpty = isFirstEmpty
      if (text === seen || isFirstEmpty) return
      seen = text
      lists = parseRevocationLists(bytes)
      inForce = bytes
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error)
      if (message !== reason || lists !== undefined) {
        warn?.(`${path}: ${message}${lists === undefined ? '' : '; keeping the lists read before'}`)
      }
      reason = message
      return
    }
    reason = ''
    generation += 1
    for (const listener of listeners) listener()
  }

  // The path is read each time rather than watched: mounted files are replaced by swapping symbolic links.
  function follow(): void {
    timer = clock.setTimeout(() => {
      void reload().then(() => {
        if (!isClosed) follow()
      })
    }, checkIntervalMs)
  }

  function close(): void {
    isClosed = true
    clock.clearTimeout(timer)
    listeners.clear()
  }

  await reload()
  follow()
  return {
    get state() {
      return lists === undefined ? 'invalid' : 'enforcing'
    },
    get source(): RevocationSource {
      return lists === undefined ? { kind: 'invalid', reason } : { kind: 'lists', bytes: inForce }
    },
    get generation() {
      return generation
    },
    get revoked() {
      return (lists ?? []).reduce((sum, { serials }) => sum + serials.size, 0)
    },
    check(chain, known) {
      if (lists === undefined) return whenInvalid === 'open' ? { kind: 'good' } : { kind: 'unknown', reason }
      return judgeChain(lists, chain, known)
    },
    subscribe(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    reload,
    close,
    async [Symbol.asyncDispose]() {
      close()
    },
  }
}

async function readIfPresent(path: string): Promise<Buffer> {
  try {
    return await readFile(path)
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return Buffer.alloc(0)
    throw error
  }
}
