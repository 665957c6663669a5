// A running API for tests: its own state directory, a free port, and a small client that shows raw answers.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { Agent, request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { parse } from 'yaml'
import { type EmbeddedApi, startEmbeddedApi } from './assemble.ts'

/** Answers are looked into freely by tests. */
// biome-ignore lint/suspicious/noExplicitAny: assertions name the fields they expect
export type Json = any

export interface Answer {
  readonly code: number
  readonly body: Json
  readonly headers: NodeJS.Dict<string | string[]>
}

export interface RequestInitLike {
  readonly body?: unknown
  readonly type?: string
  readonly headers?: Record<string, string>
}

export interface WatchEvent {
  readonly type: string
  readonly object: Json
}

export interface TestApi extends AsyncDisposable {
  readonly server: EmbeddedApi
  readonly stateDir: string
  send(method: string, path: string, init?: RequestInitLike): Promise<Answer>
  /** The body of a request that must succeed. */
  ok(method: string, path: string, body?: unknown, type?: string): Promise<Json>
  watch(path: string): AsyncIterableIterator<WatchEvent> & Disposable
}

export async function startTestApi(serviceCidr = '10.96.0.0/24'): Promise<TestApi> {
  const stateDir = mkdtempSync(join(tmpdir(), 'lateen-api-'))
  const errors: unknown[] = []
  const server = await startEmbeddedApi({
    stateDir,
    listen: [{ host: '127.0.0.1', port: 0 }],
    serviceCidr,
    onError: (error) => errors.push(error),
  })
  const config = parse(readFileSync(server.kubeconfig, 'utf8')) as Json
  const decode = (text: string) => Buffer.from(text, 'base64')
  const { user } = config.users[0]
  const { cluster } = config.clusters[0]
  const agent = new Agent({
    keepAlive: true,
    ca: decode(cluster['certificate-authority-data']),
    cert: decode(user['client-certificate-data']),
    key: decode(user['client-key-data']),
  })

  function send(method: string, path: string, init: RequestInitLike = {}): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const body = init.body === undefined ? '' : JSON.stringify(init.body)
      const length = Buffer.byteLength(body)
      const headers = { 'content-type': init.type ?? 'application/json', 'content-length': length, ...init.headers }
      const outgoing = request(cluster.server + path, { method, agent, headers }, (incoming) => {
        let text = ''
        incoming.setEncoding('utf8')
        incoming.on('data', (chunk: string) => {
          text += chunk
        })
        incoming.on('end', () => {
          const isJson = incoming.headers['content-type']?.includes('json') === true
          resolve({ code: incoming.statusCode ?? 0, body: isJson ? JSON.parse(text) : text, headers: incoming.headers })
        })
        incoming.on('error', reject)
      })
      outgoing.on('error', reject)
      outgoing.end(body)
    })
  }

  return {
    server,
    stateDir,
    send,
    async ok(method, path, body, type) {
      const answer = await send(method, path, { body, ...(type === undefined ? {} : { type }) })
      if (answer.code >= 300) throw new Error(`${method} ${path}: ${answer.code} ${JSON.stringify(answer.body)}`)
      return answer.body
    },
    watch(path) {
      const outgoing = request(cluster.server + path, { agent })
      const events = readEvents(outgoing)
      outgoing.end()
      return events
    },
    async [Symbol.asyncDispose]() {
      agent.destroy()
      await server[Symbol.asyncDispose]()
      rmSync(stateDir, { recursive: true })
      if (errors.length > 0)
        throw new AggregateError(errors, `the server reported ${errors.length} errors: ${errors[0]}`)
    },
  }
}

function readEvents(outgoing: ReturnType<typeof request>): AsyncIterableIterator<WatchEvent> & Disposable {
  const answered = new Promise<NodeJS.ReadableStream>((resolve, reject) => {
    outgoing.on('response', resolve)
    outgoing.on('error', reject)
  })
  answered.catch(() => undefined)
  async function* events(): AsyncGenerator<WatchEvent> {
    for await (const line of createInterface({ input: await answered })) yield JSON.parse(line)
  }
  const iterator = events()
  return {
    next: () => iterator.next(),
    [Symbol.asyncIterator]() {
      return this
    },
    [Symbol.dispose]: () => {
      outgoing.destroy()
    },
  }
}
