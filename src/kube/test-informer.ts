// For tests: a test API for each test, and informers of its objects.
import { after, beforeEach } from 'node:test'
import { createTestPki, type TestPki } from '../../test/support/test-pki.ts'
import type { KubeObject, Resource } from '../api/index.ts'
import { silentLogging } from '../observability/index.ts'
import type { Connection } from './connection.ts'
import { createInformer, type InformerTimes, type KubeLog } from './informer.ts'
import { startTestApi, type TestApi } from './test-api.ts'
import { createTransport, type Transport } from './transport.ts'
import type { Informer, ObjectChange } from './types.ts'

export type Widget = KubeObject<{ value: number }>

export const widgets: Resource = {
  group: 'example.com',
  version: 'v1',
  kind: 'Widget',
  plural: 'widgets',
  namespaced: false,
}

const times: InformerTimes = {
  firstRetryMs: 5,
  mostRetryMs: 20,
  mostRelistMs: 40,
  missingKindMs: 100,
  mostMissingRetryMs: 20,
  sameComplaintMs: 60_000,
}

export interface OpenOptions {
  readonly resource?: Resource
  readonly log?: KubeLog
  readonly times?: Partial<InformerTimes>
  readonly transport?: Transport
}

export interface InformerLab {
  readonly pki: TestPki
  /** Of the test that runs. */
  readonly api: TestApi
  readonly transport: Transport
  open(options?: OpenOptions): Informer<Widget>
  whenWatched(): Promise<void>
}

/** For a `describe`: each of its tests gets an empty API server, which is stopped after it. */
export function informerLab(): InformerLab {
  let running: { readonly pki: TestPki; readonly api: TestApi; readonly transport: Transport } | undefined
  const made = createTestPki()
  const now = () => {
    if (running === undefined) throw new Error('outside of a test')
    return running
  }
  async function stop(): Promise<void> {
    running?.transport.close()
    await running?.api.stop()
    running = undefined
  }
  beforeEach(async () => {
    await stop()
    const pki = await made
    const api = await startTestApi(pki)
    running = { pki, api, transport: createTransport(connectionTo(api, pki), 'test') }
  })
  after(stop)
  return {
    get pki() {
      return now().pki
    },
    get api() {
      return now().api
    },
    get transport() {
      return now().transport
    },
    open({ resource = widgets, log = silentLogging().scope('test'), transport = now().transport, ...other } = {}) {
      return createInformer<Widget>(transport, resource, {}, log, { ...times, ...other.times })
    },
    whenWatched: () => condition(() => now().api.watchers > 0),
  }
}

function connectionTo(api: TestApi, pki: TestPki): Connection {
  return {
    server: api.url,
    namespace: 'default',
    insecureSkipTlsVerify: false,
    tlsServerName: undefined,
    tls: async () => ({ ca: pki.roots, cert: undefined, key: undefined }),
    authorization: async () => 'Bearer good',
  }
}

/** What an informer tells from now on. */
export function record(informer: Informer<Widget>) {
  const batches: string[][] = []
  const looks = new Set<() => void>()
  informer.subscribe((changes: readonly ObjectChange<Widget>[]) => {
    batches.push(changes.map(({ kind, object }) => `${kind} ${object.metadata.name}=${object.spec?.value}`))
    for (const look of looks) look()
  })
  return {
    batches,
    all: () => batches.flat(),
    until: (holds: () => boolean) =>
      new Promise<void>((resolve) => {
        const look = (): void => {
          if (!holds()) return
          looks.delete(look)
          resolve()
        }
        looks.add(look)
        look()
      }),
  }
}

/** Waits for a condition of the server, which tells nobody when it changes. */
export async function condition(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 2))
}
