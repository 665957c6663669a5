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
  /** The path of a new namespace with its service account. */
  namespace(): Promise<string>
  /** Names of the objects of a list. */
  names(path: string): Promise<string[]>
  isGone(path: string): Promise<boolean>
  /** Asks again after each change of the collection until the condition holds. */
  eventually(collection: string, holds: () => Promise<boolean>): Promise<void>
}

export function configMap(name: string, more: object = {}): object {
  return { metadata: { name, ...more }, data: { key: 'value' } }
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

  async function ok(method: string, path: string, body?: unknown, type?: string): Promise<Json> {
    const answer = await send(method, path, { body, ...(type === undefined ? {} : { type }) })
    if (answer.code >= 300) throw new Error(`${method} ${path}: ${answer.code} ${JSON.stringify(answer.body)}`)
    return answer.body
  }

  function watch(path: string): AsyncIterableIterator<WatchEvent> & Disposable {
    const outgoing = request(cluster.server + path, { agent })
    const events = readEvents(outgoing)
    outgoing.end()
    return events
  }

  let namespaces = 0
  return {
    server,
    stateDir,
    send,
    ok,
    watch,
    async namespace() {
      namespaces += 1
      const name = `test-${namespaces}`
      await ok('POST', '/api/v1/namespaces', { metadata: { name } })
      await ok('POST', `/api/v1/namespaces/${name}/serviceaccounts`, { metadata: { name: 'default' } })
      return `/api/v1/namespaces/${name}`
    },
    async names(path) {
      const list = await ok('GET', path)
      return list.items.map((item: Json) => item.metadata.name)
    },
    isGone: async (path) => (await send('GET', path)).code === 404,
    async eventually(collection, holds) {
      using events = watch(`${collection}?watch=1&timeoutSeconds=10`)
      if (await holds()) return
      for await (const _ of events) if (await holds()) return
      throw new Error(`never came true for ${collection}`)
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
