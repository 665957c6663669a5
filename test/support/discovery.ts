// The control plane inside of a test's process, against an API server of the test.
import { join } from 'node:path'
import { type DiscoveryPorts, readSettings, runDiscovery } from '../../src/istiod/index.ts'
import { silentLogging } from '../../src/observability/index.ts'

export interface RunningDiscovery {
  readonly ports: DiscoveryPorts
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
  const env = { ROOT_CA_DIR: join(options.stateDir, 'no-cacerts'), POD_NAME: 'istiod-1', ...options.env }
  const stop = new AbortController()
  const started = Promise.withResolvers<DiscoveryPorts>()
  const running = runDiscovery(
    {
      settings: readSettings(flags, env, 2),
      version: 'test',
      jwtRule: '',
      logging: silentLogging(),
      started: started.resolve,
    },
    stop.signal,
  )
  running.catch(started.reject)
  const ports = await started.promise
  return {
    ports,
    async stop() {
      stop.abort()
      await running
    },
  }
}
