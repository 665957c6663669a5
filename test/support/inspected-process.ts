// Runs code on the threads of a process of this program from outside, by V8's inspector: to hold a thread up, or to make it fail.
import { once } from 'node:events'
import type net from 'node:net'
import WebSocket from 'ws'

export interface InspectedThread {
  /** Evaluates on the thread; resolves when that is done. */
  run(script: string): Promise<void>
  /** The thread does nothing else for so long. Resolves when it goes on. */
  block(ms: number): Promise<void>
}

export interface InspectedProcess extends Disposable {
  readonly main: InspectedThread
  /** By their names. */
  readonly workers: ReadonlyMap<string, InspectedThread>
}

/** What a process is to be started with, as NODE_OPTIONS. */
export const inspectable = '--inspect=127.0.0.1:9229'

interface Message {
  readonly id?: number
  readonly method?: string
  readonly params?: {
    readonly sessionId?: string
    readonly message?: string
    readonly workerInfo?: { readonly title: string }
  }
}

/** `connect` opens a connection to 127.0.0.1:9229 as the process sees it. */
export async function inspectProcess(connect: () => Promise<net.Socket>): Promise<InspectedProcess> {
  const url = await debuggerUrl(await connect())
  const transport = await connect()
  // It was connected elsewhere, and is paused.
  transport.resume()
  const socket = new WebSocket(url, { createConnection: () => transport })
  await once(socket, 'open')
  const waiting = new Map<string, () => void>()
  const workers = new Map<string, InspectedThread>()
  let lastId = 0

  function request(method: string, params: object, session = ''): Promise<void> {
    lastId += 1
    const id = lastId
    const text = JSON.stringify({ id, method, params })
    return new Promise((resolve) => {
      waiting.set(`${session} ${id}`, resolve)
      if (session === '') socket.send(text)
      else
        socket.send(
          JSON.stringify({
            id: 0,
            method: 'NodeWorker.sendMessageToWorker',
            params: { sessionId: session, message: text },
          }),
        )
    })
  }

  function receive(message: Message, session = ''): void {
    const { method, params } = message
    if (message.id !== undefined) {
      waiting.get(`${session} ${message.id}`)?.()
      waiting.delete(`${session} ${message.id}`)
    } else if (method === 'NodeWorker.attachedToWorker' && params?.sessionId !== undefined) {
      const name = /worker \d+$/.exec(params.workerInfo?.title ?? '')?.[0] ?? params.workerInfo?.title ?? ''
      workers.set(name, threadOf(params.sessionId))
    } else if (method === 'NodeWorker.receivedMessageFromWorker' && params?.message !== undefined) {
      receive(JSON.parse(params.message) as Message, params.sessionId)
    }
  }

  function threadOf(session?: string): InspectedThread {
    const run = (expression: string): Promise<void> => request('Runtime.evaluate', { expression }, session)
    return { run, block: (ms) => run(`Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ${ms})`) }
  }

  socket.on('message', (bytes: Buffer) => receive(JSON.parse(bytes.toString()) as Message))
  await request('NodeWorker.enable', { waitForDebuggerOnStart: false })
  return { main: threadOf(), workers, [Symbol.dispose]: () => socket.terminate() }
}

async function debuggerUrl(socket: net.Socket): Promise<string> {
  socket.write('GET /json/list HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n')
  let text = ''
  socket.resume()
  for await (const chunk of socket) {
    text += chunk
    const url = /"webSocketDebuggerUrl": "([^"]+)"/.exec(text)?.[1]
    if (url !== undefined) return url
  }
  throw new Error(`the inspector told no address: ${text}`)
}
