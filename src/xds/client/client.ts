// A delta xDS client that keeps its stream open: reconnects, tells what it holds, acknowledges.
import { setTimeout as sleep } from 'node:timers/promises'
import { create, type JsonObject } from '@bufbuild/protobuf'
import { core, type discovery } from '../../proto/index.ts'
import type { DeltaUpdate, DeltaVerdict } from '../types.ts'
import {
  acknowledgement,
  createHoldings,
  type DeltaRequest,
  firstRequest,
  type Holdings,
  recordUpdate,
  subscribeRequest,
  unsubscribeRequest,
} from './holdings.ts'
import type { DeltaClient, DeltaClientOptions, DeltaClientTimes } from './options.ts'
import { retryAfter, type StreamEnd } from './recycling.ts'
import { type DeltaStream, openDeltaStream } from './stream.ts'

const defaultTimes: DeltaClientTimes = {
  connectTimeoutMs: 5_000,
  leastRetryMs: 10,
  mostRetryMs: 15_000,
  unreportedMs: 30_000,
  unreadMs: 60_000,
}

/** Starts at once and goes on until it is disposed. What it holds stays in force while it is not connected. */
export function createDeltaClient(options: DeltaClientOptions): DeltaClient {
  const { log } = options
  const times = { ...defaultTimes, ...options.times }
  const node = create(core.NodeSchema, { id: options.node.id, metadata: options.node.metadata as JsonObject })
  const holdings = new Map(options.types.map((type) => [type.typeUrl, createHoldings(type)]))
  const bodyTypes = new Map(options.types.map(({ typeUrl, bodyType = typeUrl }) => [typeUrl, bodyType]))
  const synced = Promise.withResolvers<void>()
  const stop = new AbortController()
  const unreportedTimers = new Map<string, NodeJS.Timeout>()
  let stream: DeltaStream | undefined
  let answered = false

  const done = run()

  async function run(): Promise<void> {
    let baseMs = times.leastRetryMs
    while (!stop.signal.aborted) {
      answered = false
      const end = await streamOnce()
      if (stop.signal.aborted) return
      const retry = retryAfter(end, { answered, baseMs }, times)
      answered = false
      baseMs = retry.nextBaseMs
      options.onStreamEnd?.(end.kind, retry.level === 'debug')
      log.log(retry.level, 'the stream to the control plane ended', {
        address: options.address,
        reason: reasonOf(end),
        retryMs: retry.delayMs,
      })
      await pause(retry.delayMs)
    }
  }

  async function streamOnce(): Promise<StreamEnd> {
    try {
      const opened = await openDeltaStream(options, times, (response) => receive(opened, response))
      if (stop.signal.aborted) opened.close()
      else stream = opened
      let first = true
      for (const held of holdings.values()) {
        const request = firstRequest(held, options.mostReportedBytes)
        // The node is told once a stream.
        if (first) request.node = node
        opened.send(request)
        first = false
      }
      const end = await opened.ended
      stream = undefined
      for (const timer of unreportedTimers.values()) clearTimeout(timer)
      return end
    } catch (error) {
      return { kind: 'not-connected', error: error instanceof Error ? error : new Error(String(error)) }
    }
  }

  function receive(from: DeltaStream, response: discovery.DeltaDiscoveryResponse): void {
    if (stop.signal.aborted) return
    answered = true
    from.send(accept(response))
  }

  function accept(response: discovery.DeltaDiscoveryResponse): DeltaRequest {
    const held = holdings.get(response.typeUrl)
    if (held === undefined) {
      log.error('the control plane sent a type that was not asked for', { type: response.typeUrl })
      return acknowledgement(response, response.nonce, { rejected: [] })
    }
    const { update, malformed } = updateOf(response, bodyTypes.get(response.typeUrl))
    const verdict = { rejected: [...malformed, ...judge(update).rejected] }
    recordUpdate(held, update, verdict)
    awaitUnreported(held)
    if (verdict.rejected.length > 0) {
      log.warn('resources were rejected', { type: held.typeUrl, rejected: verdict.rejected.length })
    } else if (!held.synced) {
      held.synced = true
      if ([...holdings.values()].every((type) => type.synced)) synced.resolve()
    }
    return acknowledgement(held, response.nonce, verdict)
  }

  /**
   * A server that was not told of a resource sends it, or says nothing when it is no more. Waiting costs little, as a peer that is gone
   * proves no identity; forgetting too early would take what is meshed for something that is not.
   */
  function awaitUnreported(held: Holdings): void {
    clearTimeout(unreportedTimers.get(held.typeUrl))
    if (held.unreported.size === 0) return
    const timer = setTimeout(() => {
      const update = { typeUrl: held.typeUrl, resources: [], removed: [...held.unreported] }
      log.info('resources are gone that the control plane was not asked about', {
        type: held.typeUrl,
        removed: update.removed.length,
      })
      recordUpdate(held, update, judge(update))
    }, times.unreportedMs)
    unreportedTimers.set(held.typeUrl, timer)
  }

  function judge(update: DeltaUpdate): DeltaVerdict {
    try {
      return options.onUpdate(update)
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      log.error('an update could not be put into force', { type: update.typeUrl, reason })
      const names = [...update.resources.map(({ name }) => name), ...update.removed]
      return { rejected: names.map((name) => ({ name, reason })) }
    }
  }

  async function pause(ms: number): Promise<void> {
    try {
      await sleep(ms, undefined, { signal: stop.signal })
    } catch {
      // Closed while waiting.
    }
  }

  function onDemandType(typeUrl: string) {
    const held = holdings.get(typeUrl)
    if (held?.onDemand !== true) throw new TypeError(`${typeUrl} is not an on-demand type of this client`)
    return held
  }

  if ([...holdings.values()].every((type) => type.synced)) synced.resolve()

  return {
    synced: synced.promise,
    get connected() {
      return stream !== undefined && answered
    },
    subscribe(typeUrl, name) {
      const held = onDemandType(typeUrl)
      if (held.asked.has(name)) return
      held.asked.add(name)
      stream?.send(subscribeRequest(held, [name]))
    },
    unsubscribe(typeUrl, name) {
      const held = onDemandType(typeUrl)
      if (!held.asked.delete(name)) return
      held.versions.delete(name)
      stream?.send(unsubscribeRequest(held, [name]))
    },
    async [Symbol.asyncDispose]() {
      stop.abort()
      stream?.close()
      await done
    },
  }
}

function updateOf(
  response: discovery.DeltaDiscoveryResponse,
  bodyType: string | undefined,
): {
  update: DeltaUpdate
  malformed: { name: string; reason: string }[]
} {
  const malformed: { name: string; reason: string }[] = []
  const resources: { name: string; aliases: readonly string[]; version: string; body: Uint8Array }[] = []
  for (const { name, aliases, version, resource } of response.resources) {
    if (resource === undefined) malformed.push({ name, reason: 'the resource has no content' })
    else if (resource.typeUrl !== bodyType) malformed.push({ name, reason: `unexpected type ${resource.typeUrl}` })
    else resources.push({ name, aliases, version, body: resource.value })
  }
  return { update: { typeUrl: response.typeUrl, resources, removed: response.removedResources }, malformed }
}

function reasonOf(end: StreamEnd): string {
  switch (end.kind) {
    case 'closed':
      return 'closed by the server'
    case 'not-connected':
      return end.error.message
    case 'status':
      return `${end.details} (code ${end.code})`
  }
}
