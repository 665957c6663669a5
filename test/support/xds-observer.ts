// A node proxy as the control plane sees one: it subscribes to everything and keeps what it is told.
import { silentLogging } from '../../src/observability/index.ts'
import { createDeltaClient, type DeltaClient, type DeltaClientOptions } from '../../src/xds/client/index.ts'

export const address = 'type.googleapis.com/istio.workload.Address'
export const authorization = 'type.googleapis.com/istio.security.Authorization'

export interface Held {
  readonly version: string
  readonly body: Uint8Array
}

export interface XdsObserver extends AsyncDisposable {
  readonly client: DeltaClient
  /** By name; names of addresses and of policies do not meet. */
  readonly held: ReadonlyMap<string, Held>
  /** Names of all that was removed at any time. */
  readonly removed: ReadonlySet<string>
  /** Why the first stream that failed did. */
  readonly refused: Promise<string>
  /** Names received since the last call. */
  takeReceived(): string[]
  /** Resolves once the condition holds, looked at after each update; rejects when it does not within that time, twenty seconds without. */
  until(holds: () => boolean, withinMs?: number): Promise<void>
}

export interface ObserverOptions extends Pick<DeltaClientOptions, 'times'> {
  readonly tls?: { readonly roots: string; readonly token: string }
  /** By default those of node proxies. */
  readonly types?: DeltaClientOptions['types']
}

/** With roots and a token over TLS as the node proxy of `node1`; without, in plain text. */
export function observeXds(port: number, options: ObserverOptions = {}): XdsObserver {
  const { tls, times, types = [{ typeUrl: authorization }, { typeUrl: address }] } = options
  const held = new Map<string, Held>()
  const everRemoved = new Set<string>()
  const looks = new Set<() => void>()
  const refused = Promise.withResolvers<string>()
  const silent = silentLogging().scope('test')
  let received: string[] = []
  const client = createDeltaClient({
    address: `127.0.0.1:${port}`,
    transport:
      tls === undefined
        ? { kind: 'plaintext' }
        : { kind: 'tls', roots: () => tls.roots, serverName: 'istiod.istio-system.svc' },
    headers: (): Readonly<Record<string, string>> =>
      tls === undefined ? {} : { authorization: `Bearer ${tls.token}`, clusterid: 'Kubernetes' },
    node: {
      id: 'ztunnel~127.0.0.1~zt.istio-system~istio-system.svc.cluster.local',
      metadata: { NODE_NAME: 'node1', NAMESPACE: 'istio-system' },
    },
    types,
    log: { ...silent, log: (_level, _message, fields) => refused.resolve(String(fields?.reason)) },
    ...(times === undefined ? {} : { times }),
    onUpdate({ resources, removed }) {
      for (const { name, version, body } of resources) {
        held.set(name, { version, body })
        received.push(name)
      }
      for (const name of removed) {
        held.delete(name)
        everRemoved.add(name)
      }
      for (const look of [...looks]) look()
      return { rejected: [] }
    },
  })
  return {
    client,
    held,
    removed: everRemoved,
    refused: refused.promise,
    takeReceived() {
      const taken = received
      received = []
      return taken
    },
    until: (holds, withinMs = 20_000) =>
      new Promise((resolve, reject) => {
        const giveUp = (): void => {
          looks.delete(look)
          reject(new Error(`not true in time; held: ${[...held.keys()].join(' ')}`))
        }
        const timer = setTimeout(giveUp, withinMs)
        const look = (): void => {
          if (!holds()) return
          clearTimeout(timer)
          looks.delete(look)
          resolve()
        }
        looks.add(look)
        look()
      }),
    [Symbol.asyncDispose]: () => client[Symbol.asyncDispose](),
  }
}
