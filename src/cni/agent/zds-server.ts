// The ZDS server: tells the node proxies which pods to serve, each with its network namespace's descriptor.
import { closeSync } from 'node:fs'
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { listenSeqpacket, type NetworkNamespace, type SeqpacketConnection } from '../../linux/index.ts'
import { zds } from '../../proto/index.ts'
import { SettingsError } from '../settings.ts'

export interface ServedPod {
  readonly uid: string
  readonly name: string
  readonly namespace: string
  readonly serviceAccount: string
  /** Absent when it is not known: a proxy that serves the pod already keeps it. */
  readonly netns?: NetworkNamespace
}

export interface ZdsServerOptions {
  readonly path: string
  /** The pods a proxy is told of when it connects, by UID: as they are when their turn comes. */
  readonly served: ReadonlyMap<string, ServedPod>
  readonly log: (level: 'info' | 'warn', message: string) => void
  /** Called with the number of connected proxies. */
  readonly onConnections?: (count: number) => void
}

export interface ZdsServer extends AsyncDisposable {
  /** Tells the newest proxy; resolves when it serves the pod. Rejects with a ZdsError. */
  add(pod: ServedPod & { readonly netns: NetworkNamespace }): Promise<void>
  /** Tells all proxies; resolves when all have answered. */
  remove(uid: string): Promise<void>
  readonly connections: number
}

export class ZdsError extends Error {
  readonly code: 'NO_PROXY' | 'REFUSED' | 'CLOSED'
  constructor(code: ZdsError['code'], message: string) {
    super(message)
    this.name = 'ZdsError'
    this.code = code
  }
}

const answerMs = 5_000
const maxMessageBytes = 1024
/** Queued messages a proxy may be behind. */
const maxQueued = 100
/** A proxy that connects in a loop must not exhaust descriptors. */
const acceptIntervalMs = 200

interface Message {
  readonly payload: zds.WorkloadRequest['payload']
  readonly descriptors: readonly number[]
}

/** One proxy: strictly one message outstanding. */
interface Proxy {
  send(message: Message): Promise<void>
  /** The same for a message of the snapshot, which may be longer than the queue. It is made when its turn comes; undefined sends nothing. */
  sendSnapshot(make: () => Message | undefined): Promise<void>
  close(why: string): void
}

/** Throws a SettingsError when no socket can be made at the path. */
export function startZdsServer(options: ZdsServerOptions): ZdsServer {
  const { served, log } = options
  const listener = listenAt(options.path)
  /** Oldest first. */
  const proxies: Proxy[] = []
  const greeting = new Set<SeqpacketConnection>()
  const serving = new Set<Promise<void>>()
  let pause: { timer: NodeJS.Timeout; end: () => void } | undefined
  let closed = false

  const leave = (proxy: Proxy): void => {
    const at = proxies.indexOf(proxy)
    if (at < 0) return
    proxies.splice(at, 1)
    options.onConnections?.(proxies.length)
  }

  const serve = async (connection: SeqpacketConnection): Promise<void> => {
    greeting.add(connection)
    const first = await connection.receive({ maxBytes: maxMessageBytes, timeoutMs: answerMs }).catch(() => undefined)
    greeting.delete(connection)
    if (first !== undefined) closeUnwanted(first)
    if (closed || first === undefined || !isHello(first.message)) {
      if (!closed) log('warn', 'a node proxy connected and did not say hello')
      connection.close()
      return
    }
    const proxy = startProxy(connection, (why) => {
      leave(proxy)
      log(closed ? 'info' : 'warn', `node proxy disconnected: ${why}`)
    })
    proxies.push(proxy)
    options.onConnections?.(proxies.length)
    log('info', `node proxy connected (${proxies.length} now)`)
    // Queued at once, so that pods added from now on come after the snapshot.
    const uids = [...served.keys()]
    const sent = [
      ...uids.map((uid) =>
        proxy.sendSnapshot(() => {
          const pod = served.get(uid)
          return pod === undefined ? undefined : pod.netns === undefined ? keepMessage(pod) : addMessage(pod, pod.netns)
        }),
      ),
      proxy.sendSnapshot(() => ({
        payload: { case: 'snapshotSent', value: create(zds.SnapshotSentSchema) },
        descriptors: [],
      })),
    ]
    const refused = (await Promise.allSettled(sent)).filter((result) => result.status === 'rejected')
    for (const { reason } of refused) log('warn', `the node proxy did not take a pod: ${reason.message}`)
    if (refused.length === 0) log('info', `node proxy has been told of ${uids.length} pods`)
  }

  const acceptAll = async (): Promise<void> => {
    while (!closed) {
      try {
        const connection = await listener.accept()
        if (connection === undefined) return
        const one = serve(connection).finally(() => serving.delete(one))
        serving.add(one)
      } catch (error) {
        // Out of descriptors, say: it may pass.
        log('warn', `a node proxy was not accepted: ${(error as Error).message}`)
      }
      await new Promise<void>((resolve) => {
        pause = { timer: setTimeout(resolve, acceptIntervalMs), end: resolve }
      })
    }
  }
  const accepting = acceptAll()

  return {
    get connections() {
      return proxies.length
    },
    add: async (pod) => {
      const newest = proxies.at(-1)
      if (newest === undefined) throw new ZdsError('NO_PROXY', 'no ztunnel connection')
      await newest.send(addMessage(pod, pod.netns))
    },
    remove: async (uid) => {
      const del: Message = { payload: { case: 'del', value: create(zds.DelWorkloadSchema, { uid }) }, descriptors: [] }
      const results = await Promise.allSettled(proxies.map((proxy) => proxy.send(del)))
      // A proxy that is gone serves nothing any more.
      const failed = results.find((result) => result.status === 'rejected' && result.reason.code !== 'CLOSED')
      if (failed?.status === 'rejected') throw failed.reason
    },
    [Symbol.asyncDispose]: async () => {
      closed = true
      listener.close()
      clearTimeout(pause?.timer)
      pause?.end()
      for (const connection of greeting) connection.close()
      for (const proxy of [...proxies]) proxy.close('the node agent stops')
      await accepting
      await Promise.all(serving)
    },
  }
}

function startProxy(connection: SeqpacketConnection, onClose: (why: string) => void): Proxy {
  let pending: { resolve: () => void; reject: (error: Error) => void } | undefined
  let last: Promise<void> = Promise.resolve()
  let queued = 0
  let closed: string | undefined

  const close = (why: string): void => {
    if (closed !== undefined) return
    closed = why
    connection.close()
    pending?.reject(new ZdsError('CLOSED', `connection to the node proxy closed: ${why}`))
    onClose(why)
  }

  const readAnswers = async (): Promise<void> => {
    for (;;) {
      const packet = await connection.receive({ maxBytes: maxMessageBytes })
      if (packet === undefined) return close('end of stream')
      closeUnwanted(packet)
      if (packet.descriptors.length > 0 || pending === undefined)
        return close('protocol error: an answer without a question')
      const { payload } = fromBinary(zds.WorkloadResponseSchema, packet.message)
      if (payload.case !== 'ack') return close('protocol error: expected an ack')
      const { resolve, reject } = pending
      pending = undefined
      if (payload.value.error === '') resolve()
      else reject(new ZdsError('REFUSED', payload.value.error))
    }
  }
  readAnswers().catch((error: Error) => close(error.message))

  const exchange = async (make: () => Message | undefined): Promise<void> => {
    if (closed !== undefined) throw new ZdsError('CLOSED', `connection to the node proxy closed: ${closed}`)
    const next = make()
    if (next === undefined) return
    const { payload, descriptors } = next
    const answered = new Promise<void>((resolve, reject) => {
      pending = { resolve, reject }
    })
    // An answer that comes after this would be taken for that of the next message: the connection ends instead.
    const timer = setTimeout(() => close(`no answer within ${answerMs} ms`), answerMs)
    try {
      const message = toBinary(zds.WorkloadRequestSchema, create(zds.WorkloadRequestSchema, { payload }))
      await Promise.all([connection.send(message, descriptors), answered])
    } catch (error) {
      if (!(error instanceof ZdsError)) close((error as Error).message)
      throw error instanceof ZdsError ? error : new ZdsError('CLOSED', (error as Error).message)
    } finally {
      clearTimeout(timer)
    }
  }

  const enqueue = (make: () => Message | undefined): Promise<void> => {
    queued += 1
    const next = last.then(() => exchange(make))
    last = next
      .catch(() => undefined)
      .finally(() => {
        queued -= 1
      })
    return next
  }

  return {
    close,
    sendSnapshot: enqueue,
    send: async (message) => {
      if (queued >= maxQueued) throw new ZdsError('REFUSED', `the node proxy is ${queued} messages behind`)
      return enqueue(() => message)
    },
  }
}

/** Descriptors go to the proxies, none come from them. */
function closeUnwanted({ descriptors }: { readonly descriptors: readonly number[] }): void {
  for (const fd of descriptors) closeSync(fd)
}

function isHello(message: Uint8Array): boolean {
  try {
    return fromBinary(zds.ZdsHelloSchema, message).version === zds.Version.V1
  } catch {
    return false
  }
}

function addMessage({ uid, name, namespace, serviceAccount }: ServedPod, netns: NetworkNamespace): Message {
  const value = create(zds.AddWorkloadSchema, { uid, workloadInfo: { name, namespace, serviceAccount } })
  return { payload: { case: 'add', value }, descriptors: [netns.fd] }
}

function keepMessage({ uid }: ServedPod): Message {
  return { payload: { case: 'keep', value: create(zds.KeepWorkloadSchema, { uid }) }, descriptors: [] }
}

function listenAt(path: string): ReturnType<typeof listenSeqpacket> {
  try {
    return listenSeqpacket(path)
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause)
    throw new SettingsError(`ZTUNNEL_UDS_ADDRESS: no socket can be made at ${path}: ${why}`, { cause })
  }
}
