// The control plane inside of a test's process, against an API server of the test.
import { join } from 'node:path'
import { type DiscoveryPorts, readSettings, runDiscovery } from '../../src/istiod/index.ts'
import { type LogLines, logLines } from './log-lines.ts'

export interface RunningDiscovery extends AsyncDisposable {
  readonly ports: DiscoveryPorts
  readonly log: LogLines
  /** The JSON of a debug page. */
  page(name: string): Promise<unknown>
  /** The value of a metric, by its name and labels as they are printed. */
  metric(name: string): Promise<string | undefined>
  stop(): Promise<void>
}

/** On ports of its own, with nothing from files unless flags or environment say so. Rejects when it ends before it serves. */
export async function startDiscovery(options: {
  readonly kubeconfig: string
  readonly stateDir: string
  readonly flags?: Readonly<Record<string, string>>
  readonly env?: Readonly<Record<string, string>>
}): Promise<RunningDiscovery> {
  const flags = {
    kubeconfig: options.kubeconfig,
    httpAddr: '127.0.0.1:0',
    secureGRPCAddr: '127.0.0.1:0',
    monitoringAddr: '127.0.0.1:0',
    meshConfig: join(options.stateDir, 'no-mesh-config'),
    ctrlz_port: '0',
    ...options.flags,
  }
  const env = {
    ROOT_CA_DIR: join(options.stateDir, 'no-cacerts'),
    POD_NAME: 'istiod-1',
    CA_TRUSTED_NODE_ACCOUNTS: 'istio-system/ztunnel',
    ...options.env,
  }
  const stop = new AbortController()
  const log = logLines()
  const started = Promise.withResolvers<DiscoveryPorts>()
  const running = runDiscovery(
    {
      settings: readSettings(flags, env, 2),
      version: 'test',
      logging: log.logging,
      started: started.resolve,
    },
    stop.signal,
  )
  running.then(() => started.reject(new Error('it ended before it served')), started.reject)
  const ports = await started.promise
  const textOf = async (path: string) => (await fetch(`http://${ports.http[1]}${path}`)).text()
  async function end(): Promise<void> {
    stop.abort()
    await running
  }
  return {
    ports,
    log,
    page: async (name) => JSON.parse(await textOf(`/debug/${name}`)) as unknown,
    async metric(name) {
      const line = (await textOf('/metrics')).split('\n').find((one) => one.startsWith(`${name} `))
      return line?.slice(name.length + 1)
    },
    stop: end,
    [Symbol.asyncDispose]: end,
  }
}
