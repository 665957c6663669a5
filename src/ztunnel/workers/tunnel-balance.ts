// Which worker serves a tunnel connection. The kernel gives each to some worker by a hash, and peers open few of them, so that all of
// a peer's may well meet on one: whoever accepts a connection gives it to the worker that has the fewest.
import { closeSync } from 'node:fs'
import { Socket } from 'node:net'
import { MessageChannel, type MessagePort } from 'node:worker_threads'
import { descriptorOf, duplicateDescriptor, LinuxError } from '../../linux/index.ts'

/** How many tunnel connections each worker has, those on their way to it among them. */
export type TunnelCounts = Int32Array<SharedArrayBuffer>

export const createTunnelCounts = (workers: number): TunnelCounts =>
  new Int32Array(new SharedArrayBuffer(workers * Int32Array.BYTES_PER_ELEMENT))

/** The ports of one worker to each of the others, by their index. */
export type TunnelLinks = ReadonlyMap<number, MessagePort>

/** Between every two workers a channel of their own, so that one that stands still gathers no more than what it was given. */
export function createTunnelLinks(workers: number): TunnelLinks[] {
  const links = Array.from({ length: workers }, () => new Map<number, MessagePort>())
  for (const [index, own] of links.entries()) {
    for (const [other, theirs] of links.entries()) {
      if (other <= index) continue
      const { port1, port2 } = new MessageChannel()
      own.set(other, port1)
      theirs.set(index, port2)
    }
  }
  return links
}

export interface TunnelBalanceOptions {
  /** This worker's. */
  readonly index: number
  readonly counts: TunnelCounts
  readonly links: TunnelLinks
  /** Workers that are given nothing for now. */
  readonly stuck: () => readonly number[]
  /**
   * Whether this worker can take a connection of the pod, by its number: one that another has accepted not while the pod drains, one
   * of its own that comes back as long as there is the pod.
   */
  readonly canTake: (pod: number, isOwn: boolean) => boolean
  /** Serves a connection, which is paused and unread. */
  readonly take: (pod: number, socket: Socket) => void
}

export interface TunnelBalance extends Disposable {
  /**
   * For each connection that this worker has accepted, before anything is read of it: `here`, or a promise that is settled once
   * another worker serves it.
   */
  place(pod: number, socket: Socket): 'here' | Promise<void>
}

type Message =
  | {
      readonly kind: 'give'
      /** By which the first who had it knows it. */
      readonly id: number
      readonly pod: number
      /** Belongs to whom it is given. */
      readonly fd: number
      readonly isReturned: boolean
    }
  | { readonly kind: 'taken'; readonly id: number }

type Given = Extract<Message, { kind: 'give' }>

export function createTunnelBalance(options: TunnelBalanceOptions): TunnelBalance {
  const { index, counts, links, stuck, canTake, take } = options
  const given = new Map<number, () => void>()
  let lastId = 0
  const post = (to: number, message: Message): void => links.get(to)?.postMessage(message)
  for (const [other, port] of links) {
    port.on('message', (message: Message) => {
      if (message.kind === 'give') receive(other, message)
      else settle(message.id)
    })
  }

  function least(): number {
    let best = index
    const still = stuck()
    for (let other = 0; other < counts.length; other += 1) {
      if (Atomics.load(counts, other) < Atomics.load(counts, best) && !still.includes(other)) best = other
    }
    return best
  }

  /** Of a connection that is counted already. */
  function serve(pod: number, fd: number): void {
    // As a listener gives it: what the client has sent stays in the kernel until somebody reads.
    const socket = new Socket(Object.assign({ fd, allowHalfOpen: true }, { manualStart: true })).pause()
    uncountOnClose(socket)
    take(pod, socket)
  }

  const uncountOnClose = (socket: Socket) => void socket.once('close', () => Atomics.sub(counts, index, 1))

  function give(to: number, message: Given): void {
    Atomics.add(counts, to, 1)
    post(to, message)
  }

  function receive(from: number, message: Given): void {
    const { id, pod, fd, isReturned } = message
    const takes = canTake(pod, isReturned)
    if (takes) serve(pod, fd)
    else Atomics.sub(counts, index, 1)
    if (isReturned) {
      if (!takes) closeSync(fd)
      settle(id)
    } else if (takes) post(from, { kind: 'taken', id })
    else give(from, { ...message, isReturned: true })
  }

  function settle(id: number): void {
    given.get(id)?.()
    given.delete(id)
  }

  return {
    place(pod, socket) {
      // While the pod is starting here, it could not come back.
      const to = canTake(pod, true) ? least() : index
      const fd = to === index ? undefined : duplicateOf(socket)
      if (fd === undefined) {
        Atomics.add(counts, index, 1)
        uncountOnClose(socket)
        return 'here'
      }
      lastId += 1
      const id = lastId
      const { promise, resolve } = Promise.withResolvers<void>()
      given.set(id, resolve)
      give(to, { kind: 'give', id, pod, fd, isReturned: false })
      // The connection stays: there is the other descriptor.
      socket.destroy()
      return promise
    },
    [Symbol.dispose]() {
      for (const port of links.values()) port.close()
    },
  }
}

/** Undefined when there is no descriptor left to be had, or the client is gone already. */
function duplicateOf(socket: Socket): number | undefined {
  const fd = descriptorOf(socket)
  if (fd === undefined) return undefined
  try {
    return duplicateDescriptor(fd)
  } catch (error) {
    if (error instanceof LinuxError) return undefined
    throw error
  }
}
