// Keeps a node's service rules equal to the API's Services and EndpointSlices.
import { resources } from '../../api/index.ts'
import type { Informer, KubeClient } from '../../kube/index.ts'
import type { EndpointSlice, Service } from '../node/types.ts'
import { run, tryRun } from '../run.ts'
import { type ServicePort, servicePorts } from './backends.ts'
import { type Ruleset, type RulesetSettings, serviceRuleset } from './ruleset.ts'

const gatherMs = 20
const retryMs = 2000

export interface ServiceProxy extends AsyncDisposable {
  readonly services: Informer<Service>
  /** Resolves when the rules were applied for the first time. */
  readonly ready: Promise<void>
}

/** Applies rules in the network namespace this process runs in. */
export function startServiceProxy(
  client: KubeClient,
  nodeName: string,
  settings: RulesetSettings,
  log: (message: string) => void,
): ServiceProxy {
  const services = client.informer<Service>(resources.services)
  const slices = client.informer<EndpointSlice>(resources.endpointSlices)
  const ready = Promise.withResolvers<void>()
  let applied: Ruleset | undefined
  let appliedPorts: readonly ServicePort[] = []
  let timer: NodeJS.Timeout | undefined
  let working: Promise<void> = Promise.resolve()
  let closed = false

  const apply = async () => {
    await Promise.all([services.synced, slices.synced])
    if (closed) return
    const ports = servicePorts(services.list(), slices.list(), nodeName)
    const next = serviceRuleset(ports, settings, applied)
    if (next.text !== applied?.text) {
      // What an earlier process left is unknown: begin with an empty table, in the same transaction.
      const fresh = applied === undefined ? `add table ip ${settings.table}\ndelete table ip ${settings.table}\n` : ''
      await run(['nft', '-f', '-'], { input: fresh + next.text })
      await forgetDatagramFlows(appliedPorts, ports)
    }
    const { text } = serviceRuleset(ports, settings, next)
    applied = { ...next, text }
    appliedPorts = ports
    ready.resolve()
  }

  const schedule = (delayMs: number) => {
    if (closed || timer !== undefined) return
    timer = setTimeout(() => {
      timer = undefined
      working = working.then(apply).catch((error: Error) => {
        log(`service rules not applied: ${error.message}`)
        applied = undefined
        schedule(retryMs)
      })
    }, delayMs)
  }
  const unsubscribe = [services.subscribe(() => schedule(gatherMs)), slices.subscribe(() => schedule(gatherMs))]
  schedule(0)

  return {
    services,
    ready: ready.promise,
    async [Symbol.asyncDispose]() {
      closed = true
      clearTimeout(timer)
      for (const end of unsubscribe) end()
      await working
      await Promise.all([services[Symbol.asyncDispose](), slices[Symbol.asyncDispose]()])
    },
  }
}

/** The kernel goes on sending a UDP flow to the backend it once chose; flows to backends that are gone are forgotten. */
async function forgetDatagramFlows(before: readonly ServicePort[], after: readonly ServicePort[]): Promise<void> {
  const key = (port: ServicePort, ip: string) => `${port.name}/${ip}`
  const datagram = (ports: readonly ServicePort[]) => ports.filter((port) => port.protocol === 'udp')
  const kept = new Set(datagram(after).flatMap((port) => port.backends.map((backend) => key(port, backend.ip))))
  for (const port of datagram(before)) {
    for (const { ip } of port.backends) {
      if (kept.has(key(port, ip))) continue
      for (const serviceIp of port.ips) {
        await tryRun(['conntrack', '-D', '-p', 'udp', '--orig-dst', serviceIp, '--dst-nat', ip]).catch(() => undefined)
      }
    }
  }
}
