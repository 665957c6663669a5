// One stream: requests and pushes in one sequence, at most one message on the way, and no more memory than changed names for a client that doesn't read.
import { randomUUID } from 'node:crypto'
import type { Scope } from '../../observability/index.ts'
import type { OneShotType, XdsClient } from '../types.ts'
import { stepDelta } from './delta.ts'
import { type ProxyNode, textOf } from './node.ts'
import { createOneShots } from './one-shots.ts'
import type { Outlet } from './outlet.ts'
import type { Wave } from './push-lane.ts'
import { mostNameBytes, nameOverheadBytes, type Request, tooManyNames } from './request.ts'
import type { SendBudget } from './send-budget.ts'
import { sotwContent, sotwPush, stepSotw } from './sotw.ts'
import { type Content, hasPending, noteChanges, type ServedType, takeLater, takePending, type Watch } from './watch.ts'
import { deltaResource, deltaResponse, type Envelope, removedResource, sotwResource, sotwResponse } from './wire.ts'
import { deltaContent } from './wire-content.ts'

export interface ConnectionOptions {
  readonly id: string
  readonly node: ProxyNode
  readonly identities: readonly string[]
  /** Those of them that give rights. */
  readonly ownIdentities: readonly string[]
  readonly peer: string
  /** In the order in which they are pushed. */
  readonly types: readonly ServedType[]
  readonly oneShots: ReadonlyMap<string, OneShotType>
  /** What a type that is none of these is answered with; undefined: nothing. */
  readonly otherType?: ((client: XdsClient, typeUrl: string) => OneShotType | undefined) | undefined
  readonly outlet: Outlet
  readonly budget: SendBudget
  readonly controlPlane: string
  readonly nextVersion: () => string
  readonly events: ConnectionEvents
  readonly log: Scope
}

export interface ConnectionEvents {
  sent(typeUrl: string, bytes: number): void
  /** A response was put together in so long. */
  built(typeUrl: string, ms: number): void
  /** A response could not be delivered. */
  lost(typeUrl: string): void
  stale(typeUrl: string): void
  rejected(typeUrl: string): void
  /** A message took so long to leave. */
  left(ms: number): void
  /** A change waited so long for earlier messages of this client. */
  queued(ms: number): void
  /** A client was sent all changes up to one that happened so long ago. */
  converged(ms: number): void
}

export interface Connection {
  readonly id: string
  readonly node: ProxyNode
  readonly identities: readonly string[]
  readonly peer: string
  readonly connectedAt: Date
  readonly watches: ReadonlyMap<string, Watch>
  receive(request: Request): void
  /** Notes the changes that concern this client and sends what it can take. `since`: when the first of them happened, by the performance clock. */
  push(wave: Wave, since?: number): void
  /** Sends again all that is watched, one message a type. */
  resend(): void
  /** Clients have come or gone: tells it again where this client has asked who they are. */
  recall(): void
  close(): void
}

/** Requests waiting beyond either of these stop the flow. */
const mostWaiting = 16
const mostWaitingBytes = 1024 * 1024

/** A client opens a stream with one request a type: they are awaited for a moment, so that the order of the answers is ours. */
const firstPauseMs = 10

type Message = (envelope: Envelope) => Buffer

export function createConnection(options: ConnectionOptions): Connection {
  const { types, outlet, node, events, log } = options
  const nodeName = textOf(node.metadata, 'NODE_NAME')
  const client: XdsClient = { nodeId: node.id, metadata: node.metadata, identities: options.ownIdentities }
  const byUrl = new Map(types.map((type, order) => [type.source.typeUrl, { type, order }]))
  const watches = new Map<string, Watch>()
  const oneShots = createOneShots(client)
  const waiting: Request[] = []
  let waitingBytes = 0
  /** Requests are held back until there is room for them. */
  let isHeld = false
  const follow: string[] = []
  let protocol: Request['kind'] = 'delta'
  let sending = false
  /** A batch has begun to go out, so that new changes are for the next one. */
  let isPushing = false
  let closed = false
  let soon: NodeJS.Timeout | undefined
  /** At least what the names of all watches take. */
  let nameBytes = 0
  /** When the oldest change happened that is not sent yet, and when it came here. */
  let behind: { readonly since: number; readonly noted: number; isStarted: boolean } | undefined

  function pump(): void {
    clearTimeout(soon)
    soon = undefined
    try {
      while (!sending && !closed) {
        const next = nextAnswer() ?? nextFollow() ?? nextPush() ?? oneShots.next()
        if (next === undefined) return
        send(next)
      }
    } catch (error) {
      outlet.fail(error)
    }
  }

  function nextAnswer(): Outgoing | undefined {
    for (let request = takeRequest(); request !== undefined; request = takeRequest()) {
      const outgoing = stepOf(request)
      if (outgoing !== undefined) return outgoing
    }
    return undefined
  }

  function holdWhileFull(): void {
    const isFull = waiting.length >= mostWaiting || waitingBytes >= mostWaitingBytes
    if (isFull === isHeld) return
    isHeld = isFull
    outlet.hold(isFull)
  }

  /** Requests are answered in the order in which types are pushed; those of one type in theirs. */
  function takeRequest(): Request | undefined {
    let best = -1
    let bestOrder = Infinity
    waiting.forEach(({ message }, index) => {
      const order = byUrl.get(message.typeUrl)?.order ?? -1
      if (order < bestOrder) [best, bestOrder] = [index, order]
    })
    const [request] = best === -1 ? [] : waiting.splice(best, 1)
    if (request === undefined) return undefined
    waitingBytes -= request.bytes
    holdWhileFull()
    return request
  }

  function stepOf(request: Request): Outgoing | undefined {
    const { typeUrl } = request.message
    const oneShot = options.oneShots.get(typeUrl)
    if (oneShot !== undefined) return oneShots.answer(oneShot, request)
    const type = byUrl.get(typeUrl)?.type
    if (type === undefined) {
      const other = options.otherType?.(client, typeUrl)
      if (other !== undefined) return oneShots.answer(other, request)
      log.debug('a type that is not served was asked for', { client: options.id, type: typeUrl })
      return undefined
    }
    const known = watches.get(typeUrl)
    if (known === undefined) type.admit?.(client)
    const step =
      request.kind === 'delta'
        ? stepDelta(known, type, request.message, nodeName)
        : stepSotw(known, type, request.message)
    switch (step.kind) {
      case 'silent':
        if (step.reason === 'stale') events.stale(typeUrl)
        if (step.reason === 'nack') rejected(typeUrl, known)
        return undefined
      case 'forget':
        watches.delete(typeUrl)
        return undefined
      case 'answer':
        watches.set(typeUrl, step.watch)
        boundNames(request)
        if (request.kind === 'delta' || known === undefined) afterAnswer(type)
        return { watch: step.watch, content: step.content }
    }
  }

  function rejected(typeUrl: string, watch: Watch | undefined): void {
    events.rejected(typeUrl)
    if (watch === undefined || watch.nonceRejected === watch.nonceSent) return
    watch.nonceRejected = watch.nonceSent
    log.warn('a client rejects what it was sent', { client: options.id, type: typeUrl, reason: watch.lastError ?? '' })
  }

  /** What is held is counted anew only when what was asked for may be too much. */
  function boundNames({ kind, message }: Request): void {
    nameBytes += sizeOfNames(
      kind === 'sotw'
        ? message.resourceNames
        : [...message.resourceNamesSubscribe, ...Object.keys(message.initialResourceVersions)],
    )
    if (nameBytes <= mostNameBytes) return
    nameBytes = 0
    for (const { names } of watches.values()) nameBytes += sizeOfNames(names)
    if (nameBytes <= mostNameBytes) return
    throw tooManyNames()
  }

  function afterAnswer(type: ServedType): void {
    const followed = type.followedBy === undefined ? undefined : watches.get(type.followedBy)
    if (followed === undefined || type.followedBy === undefined) return
    if (protocol === 'sotw') followed.alwaysRespond = true
    else follow.push(type.followedBy)
  }

  function nextFollow(): Outgoing | undefined {
    const typeUrl = follow.shift()
    const watch = typeUrl === undefined ? undefined : watches.get(typeUrl)
    return watch === undefined ? undefined : { watch, content: () => sotwContent(watch, watch.names) }
  }

  /** The types of one batch after each other, then those of the next: a type that changes all the time cannot keep back the others. */
  function nextPush(): Outgoing | undefined {
    for (;;) {
      const next = nextOfBatch()
      if (next !== undefined) return { ...next, rechoose: beginBatch }
      isPushing = false
      const taken = [...watches.values()].filter(takeLater)
      if (taken.length === 0) return undefined
    }
  }

  /** Until a batch really begins to go out, what comes goes with it, in its order. */
  function beginBatch(): Outgoing | undefined {
    isPushing = true
    return nextOfBatch()
  }

  function nextOfBatch(): Outgoing | undefined {
    for (const part of ['changes', 'removals'] as const) {
      for (const type of types) {
        const watch = watches.get(type.source.typeUrl)
        if (watch === undefined) continue
        const isSplit = type.removals === 'last' && protocol === 'delta'
        if (part === 'removals' && !isSplit) continue
        const wanted = isSplit ? part : 'all'
        if (!hasPending(watch, wanted)) continue
        return { watch, content: () => (protocol === 'sotw' ? sotwPush(watch) : takePending(watch, wanted)) }
      }
    }
    return undefined
  }

  function send(next: Outgoing): void {
    sending = true
    options.budget.enter((sent) => {
      let startedAt: number | undefined
      let chosen: Outgoing | undefined = next
      const done = (isLost = false): void => {
        if (isLost) events.lost(chosen?.watch.type.source.typeUrl ?? '')
        else if (startedAt !== undefined) events.left(performance.now() - startedAt)
        sent()
        sending = false
        pump()
        if (!sending && !closed) caughtUp()
      }
      if (closed) {
        done()
        return 0
      }
      const beganAt = performance.now()
      try {
        if (next.rechoose !== undefined) chosen = next.rechoose()
        const now = chosen?.content()
        if (chosen === undefined || now === undefined) {
          done()
          return 0
        }
        const { watch } = chosen
        const message = encode(watch, now)
        startedAt = performance.now()
        events.built(watch.type.source.typeUrl, startedAt - beganAt)
        if (behind?.isStarted === false) {
          behind.isStarted = true
          events.queued(startedAt - behind.noted)
        }
        outlet.write(message, done)
        return message.byteLength
      } catch (error) {
        outlet.fail(error)
        done()
        return 0
      }
    })
  }

  /** Nothing waits any more. */
  function caughtUp(): void {
    if (behind?.isStarted === true) events.converged(performance.now() - behind.since)
    behind = undefined
  }

  function encode(watch: Watch, content: Content): Buffer {
    const { typeUrl } = watch.type.source
    const version = options.nextVersion()
    const nonce = `${version}/${randomUUID()}`
    const message = messageOf(protocol, watch, content)({ typeUrl, version, nonce, controlPlane: options.controlPlane })
    watch.nonceSent = nonce
    watch.lastSentAt = new Date()
    events.sent(typeUrl, message.byteLength)
    return message
  }

  return {
    id: options.id,
    node,
    identities: options.identities,
    peer: options.peer,
    connectedAt: new Date(),
    watches,
    receive(request) {
      if (closed) return
      protocol = request.kind
      waiting.push(request)
      waitingBytes += request.bytes
      holdWhileFull()
      if (watches.size > 0) pump()
      else soon ??= setTimeout(pump, firstPauseMs)
    },
    push(wave, since = performance.now()) {
      for (const [typeUrl, changes] of wave) {
        const watch = watches.get(typeUrl)
        if (watch !== undefined)
          noteChanges(watch, changes, nodeName, protocol === 'delta', isPushing ? watch.later : watch)
      }
      behind ??= { since, noted: performance.now(), isStarted: false }
      pump()
      if (!sending && !closed) caughtUp()
    },
    resend() {
      follow.splice(0, follow.length, ...types.map(({ source }) => source.typeUrl).filter((url) => watches.has(url)))
      pump()
    },
    recall() {
      // With the first answers, where these wait for more requests.
      if (oneShots.recall() && soon === undefined) pump()
    },
    close() {
      closed = true
      clearTimeout(soon)
      waiting.length = 0
      watches.clear()
    },
  }
}

function sizeOfNames(names: Iterable<string>): number {
  let bytes = 0
  for (const name of names) bytes += name.length + nameOverheadBytes
  return bytes
}

interface Outgoing {
  readonly watch: Watch
  readonly content: () => Content | undefined
  /** What to send instead when it can be sent. */
  readonly rechoose?: () => Outgoing | undefined
}

function messageOf(protocol: Request['kind'], watch: Watch, content: Content): Message {
  const { resources, removed, encoded } = content
  const { typeUrl } = watch.type.source
  if (protocol === 'delta' && watch.wildcard) {
    const entries = encoded?.() ?? deltaContent(typeUrl, resources, removed)
    return (envelope) => deltaResponse(envelope, [entries])
  }
  if (protocol === 'sotw') {
    const parts = resources.flatMap((resource) => sotwResource(typeUrl, resource))
    return (envelope) => sotwResponse(envelope, parts)
  }
  const parts = resources.flatMap((resource) => deltaResource(typeUrl, resource, true))
  for (const name of removed) parts.push(removedResource(name))
  return (envelope) => deltaResponse(envelope, parts)
}
