// A control plane in the test's own process, and what a node proxy that is connected to it holds.
import { join } from 'node:path'
import { type DiscoveryFlags, type DiscoveryPorts, readSettings, runDiscovery } from '../../src/istiod/index.ts'
import { silentLogging } from '../../src/observability/index.ts'
import { createDeltaClient, type DeltaUpdate } from '../../src/xds/client/index.ts'
import { type LogLines, logLines } from './log-lines.ts'

export const addressType = 'type.googleapis.com/istio.workload.Address'
export const authorizationType = 'type.googleapis.com/istio.security.Authorization'

export interface DiscoveryUnderTest extends AsyncDisposable {
  readonly ports: DiscoveryPorts
  readonly log: LogLines
  /** The JSON of a debug page. */
  page(path: string): Promise<unknown>
  /** The value of a metric, by its name and labels as they are printed. */
  metric(name: string): Promise<string | undefined>
}

/** Starts it on free ports; `dir` holds nothing that it would take for mounted configuration. Rejects when it does not start. */
export async function startDiscovery(
  dir: string,
  flags: DiscoveryFlags,
  env: Readonly<Record<string, string>> = {},
): Promise<DiscoveryUnderTest> {
  const stop = new AbortController()
  const log = logLines()
  const settings = readSettings(
    {
      httpAddr: '127.0.0.1:0',
      secureGRPCAddr: '127.0.0.1:0',
      grpcAddr: '127.0.0.1:0',
      monitoringAddr: '127.0.0.1:0',
      meshConfig: join(dir, 'none'),
      networksConfig: join(dir, 'none'),
      ctrlz_port: '0',
      ...flags,
    },
    { ROOT_CA_DIR: join(dir, 'none'), POD_NAME: 'istiod-1', ...env },
    2,
  )
  const started = Promise.withResolvers<DiscoveryPorts>()
  const running = runDiscovery(
    { settings, version: 'test', jwtRule: '', logging: log.logging, started: started.resolve },
    stop.signal,
  )
  running.then(() => started.reject(new Error('it ended before it was ready')), started.reject)
  const ports = await started.promise
  const fetchText = async (path: string) => (await fetch(`http://${ports.http[1]}${path}`)).text()
  return {
    ports,
    log,
    page: async (path) => JSON.parse(await fetchText(path)) as unknown,
    async metric(name) {
      const line = (await fetchText('/metrics')).split('\n').find((one) => one.startsWith(`${name} `))
      return line?.slice(name.length + 1)
    },
    async [Symbol.asyncDispose]() {
      stop.abort()
      await running
    },
  }
}

export interface ConnectedProxy extends AsyncDisposable {
  /** Resources by name, as they were sent last. */
  readonly held: ReadonlyMap<string, Uint8Array>
  readonly synced: Promise<void>
  /** Rejects after twenty seconds. */
  until(holds: (held: ReadonlyMap<string, Uint8Array>) => boolean): Promise<void>
}

/** A node proxy of node `n` at the port without TLS. */
export function connectProxy({ plainGrpc = 0 }: DiscoveryPorts): ConnectedProxy {
  const held = new Map<string, Uint8Array>()
  const looks = new Set<() => void>()
  const client = createDeltaClient({
    address: `127.0.0.1:${plainGrpc}`,
    transport: { kind: 'plaintext' },
    headers: () => ({}),
    node: { id: 'ztunnel~127.0.0.1~zt.istio-system~istio-system.svc.cluster.local', metadata: { NODE_NAME: 'n' } },
    types: [{ typeUrl: authorizationType }, { typeUrl: addressType }],
    log: silentLogging().scope('test'),
    onUpdate({ resources: changed, removed }: DeltaUpdate) {
      for (const { name, body } of changed) held.set(name, body)
      for (const name of removed) held.delete(name)
      for (const look of [...looks]) look()
      return { rejected: [] }
    },
  })
  return {
    held,
    synced: client.synced,
    until: (holds) =>
      new Promise<void>((resolve, reject) => {
        const give = (): void => {
          looks.delete(look)
          reject(new Error(`not true in time; it holds ${[...held.keys()].join(' ')}`))
        }
        const timer = setTimeout(give, 20_000)
        const look = (): void => {
          if (!holds(held)) return
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
