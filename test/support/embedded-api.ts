// An embedded API of its own for one test file, with clients of it.
import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { KubeObject, ObjectKey, Resource } from '../../src/api/index.ts'
import { type EmbeddedApi, startEmbeddedApi } from '../../src/kube/apiserver/index.ts'
import { type Connection, clientOf, createKubeClient, type KubeClient, loadConnection } from '../../src/kube/index.ts'
import { untilObject } from './until-object.ts'

export interface TestApi extends AsyncDisposable {
  /** The one that runs. */
  readonly server: EmbeddedApi
  /** Ends the server; its content and its clients stay. */
  stop(): Promise<void>
  /** Starts it again at the same address. */
  start(): Promise<void>
  /** The administrator. */
  readonly client: KubeClient
  readonly ca: string
  /** A client that sends this token, or nothing. */
  as(token?: string): KubeClient
  /** A client with this client certificate. */
  withCertificate(cert: string, key: string): KubeClient
  /** Resolves with what `find` finds first in the object; rejects after ten seconds. */
  until<T extends KubeObject, R>(
    resource: Resource,
    key: ObjectKey,
    find: (object: T | undefined) => R | undefined,
  ): Promise<R>
}

/** An API server on a port of this machine; an error that it does not expect fails the test. */
export const startApi = (stateDir: string, port = 0): Promise<EmbeddedApi> =>
  startEmbeddedApi({
    stateDir,
    listen: [{ host: '127.0.0.1', port }],
    serviceCidr: '10.96.0.0/16',
    onError: (error) => assert.fail(String(error)),
  })

export async function startTestApi(): Promise<TestApi> {
  const directory = mkdtempSync(join(tmpdir(), 'lateen-api-'))
  let server = await startApi(directory)
  let isRunning = true
  const port = server.addresses[0]?.port ?? 0
  const client = await createKubeClient({ kubeconfig: server.kubeconfig })
  const admin = await loadConnection({ kubeconfig: server.kubeconfig })
  const ca = readFileSync(join(directory, 'pki/ca.crt'), 'utf8')
  const clients: KubeClient[] = [client]
  const connect = (changes: Partial<Connection>): KubeClient => {
    const created = clientOf({
      ...admin,
      tls: async () => ({ ca, cert: undefined, key: undefined }),
      authorization: async () => undefined,
      ...changes,
    })
    clients.push(created)
    return created
  }
  return {
    get server() {
      return server
    },
    async stop() {
      isRunning = false
      await server[Symbol.asyncDispose]()
    },
    async start() {
      server = await startApi(directory, port)
      isRunning = true
    },
    client,
    ca,
    as: (token) => connect(token === undefined ? {} : { authorization: async () => `Bearer ${token}` }),
    withCertificate: (cert, key) => connect({ tls: async () => ({ ca, cert, key }) }),
    until: (resource, key, find) => untilObject(client, resource, key, find),
    async [Symbol.asyncDispose]() {
      for (const one of clients) await one.close()
      if (isRunning) await server[Symbol.asyncDispose]()
      rmSync(directory, { recursive: true })
    },
  }
}
