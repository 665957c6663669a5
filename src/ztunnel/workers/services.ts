// What a worker's data plane needs, put together from its configuration and what the main thread gives.
import { readFileSync } from 'node:fs'
import type { TlsCredentials } from '../../hbone/index.ts'
import type { Logging } from '../../observability/index.ts'
import type { KnownAuthorities } from '../certificates/authorities.ts'
import { createHostnameResolver, type DataPlaneServices } from '../dataplane/index.ts'
import { createTraceContexts, identityOf } from '../decisions/index.ts'
import { createDnsAnswerer, createExchange, createForwarder, parseResolvConf } from '../dns/index.ts'
import type { Identity, Workload } from '../model.ts'
import type { MeshFollower } from '../state/follower.ts'
import { peerOf } from '../telemetry/facts.ts'
import { createConnectionReports, errorTexts, known, sourceLabels, type ZtunnelMetrics } from '../telemetry/index.ts'
import type { ReceivedRevocations } from './revocations.ts'
import type { WorkerConfig } from './worker-config.ts'

export interface WorkerSources {
  readonly state: MeshFollower
  readonly metrics: ZtunnelMetrics
  readonly logging: Logging
  readonly credentials: (identity: Identity) => Promise<TlsCredentials>
  readonly authorities: KnownAuthorities
  readonly revocations?: ReceivedRevocations
  readonly askAddress: NonNullable<DataPlaneServices['onDemand']>['ask']
}

export function createDataPlaneServices(config: WorkerConfig, sources: WorkerSources): DataPlaneServices {
  const { state, metrics, logging, revocations, authorities } = sources
  const random = Math.random
  const hostnames = createHostnameResolver({ ipv6: config.ipv6Enabled, random })
  return {
    state,
    newTrace: createTraceContexts(),
    ...(config.xdsOnDemand ? { onDemand: { ask: sources.askAddress } } : {}),
    credentials: sources.credentials,
    metrics,
    log: logging.scope('proxy', 'Connections'),
    rbacLog: logging.scope('rbac', 'Policy decisions'),
    random,
    reports: createConnectionReports({ metrics, logging }),
    resolveHostname: (workload, family, source) => {
      metrics.onDemandDns.with(onDemandLabels(workload, source)).inc()
      return hostnames.resolve(workload, family)
    },
    ...(config.dnsProxyEnabled ? { dns: dnsOf(config, sources) } : {}),
    ...(revocations === undefined
      ? {}
      : {
          revocations: {
            check(chain) {
              const verdict = revocations.check(chain, authorities.list())
              if (verdict.kind === 'good') return undefined
              return verdict.kind === 'revoked' ? errorTexts.revoked : verdict.reason
            },
            subscribe: revocations.subscribe,
          },
        }),
  }
}

function dnsOf(
  config: WorkerConfig,
  { state, metrics, logging }: WorkerSources,
): NonNullable<DataPlaneServices['dns']> {
  const { ipv6Enabled, packetMark, preferredServiceNamespace } = config
  const resolvConf = parseResolvConf(readFileSync('/etc/resolv.conf', 'utf8'))
  return createDnsAnswerer({
    state,
    metrics,
    logging,
    random: Math.random,
    ipv6Enabled,
    clusterDomain: config.clusterDomain,
    forwarder: createForwarder({
      resolvConf,
      exchange: createExchange(packetMark === undefined ? {} : { mark: packetMark }),
    }),
    ...(config.mode === 'dedicated' ? { searchDomains: resolvConf.searchDomains } : {}),
    ...(preferredServiceNamespace === undefined ? {} : { preferredServiceNamespace }),
  })
}

function onDemandLabels({ hostname }: Workload, source: Workload) {
  const labels = sourceLabels(peerOf(source, undefined), identityOf(source))
  return { ...labels, hostname: known(hostname) }
}
