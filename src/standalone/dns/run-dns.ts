// The cluster DNS process: a server over what the API says.
import { readFileSync } from 'node:fs'
import { createKubeClient } from '../../kube/index.ts'
import { parseResolvConf } from '../node/name-files.ts'
import { liveView } from './cluster-view.ts'
import { startDnsServer } from './server.ts'

export interface DnsOptions {
  readonly host: string
  readonly port: number
  readonly healthPort: number
  readonly domain: string
  readonly signal: AbortSignal
}

/** Serves until the signal. */
export async function runDns(options: DnsOptions): Promise<void> {
  await using stack = new AsyncDisposableStack()
  const client = await createKubeClient()
  stack.defer(() => client.close())
  const live = stack.use(liveView(client, options.domain))
  let ready = false
  void live.synced.then(() => {
    ready = true
  })
  const { nameservers } = parseResolvConf(readFileSync('/etc/resolv.conf', 'utf8'))
  stack.use(await startDnsServer({ ...options, view: live.view, resolvers: () => nameservers, isReady: () => ready }))
  const { promise, resolve } = Promise.withResolvers<void>()
  options.signal.addEventListener('abort', () => resolve(), { once: true })
  await promise
}
