// Suite ztunnel: the node proxy's decisions, state, DNS, configuration, telemetry and servers, against the real code.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'
import type { ListCases } from './adapter.ts'
import { runAccessLog } from './ztunnel/access-log.ts'
import { runAdmin } from './ztunnel/admin.ts'
import { runCertificates } from './ztunnel/certificates.ts'
import { runConfig } from './ztunnel/config.ts'
import { runDns } from './ztunnel/dns.ts'
import { runEndpoints } from './ztunnel/endpoints.ts'
import { runHbonePool } from './ztunnel/hbone-pool.ts'
import { runInbound } from './ztunnel/inbound.ts'
import { runLoadBalancing } from './ztunnel/load-balancing.ts'
import { runOutbound } from './ztunnel/outbound.ts'
import { runRbac } from './ztunnel/rbac.ts'
import { pendingScenario, runScenario } from './ztunnel/scenarios.ts'
import { runServiceLookup } from './ztunnel/service-lookup.ts'
import type { SuiteFile, TopicRunner } from './ztunnel/topic.ts'
import { runWireFormats } from './ztunnel/wire-formats.ts'
import { runZds } from './ztunnel/zds.ts'

const runners: Readonly<Record<string, TopicRunner>> = {
  'outbound-routing': runOutbound,
  'load-balancing': runLoadBalancing,
  'service-lookup': runServiceLookup,
  'inbound-connect': runInbound,
  rbac: runRbac,
  endpoints: runEndpoints,
  config: runConfig,
  scenarios: runScenario,
  zds: runZds,
  'hbone-pool': runHbonePool,
  admin: runAdmin,
  dns: runDns,
  'wire-formats': runWireFormats,
  certificates: runCertificates,
  'access-log-metrics': runAccessLog,
}

export const cases: ListCases = (suiteDir) =>
  readdirSync(suiteDir)
    .filter((name) => name.endsWith('.yaml'))
    .flatMap((name) => {
      const file = parse(readFileSync(join(suiteDir, name), 'utf8')) as SuiteFile
      const run = runners[file.topic]
      return file.cases.map((one) => {
        const pending = run === undefined ? `no runner of topic ${file.topic}` : pendingOf(file.topic)
        return {
          name: `${file.topic}/${one.name}`,
          ...(pending === undefined ? {} : { pending }),
          run: () => run?.(one, file.defaults ?? {}),
        }
      })
    })

const pendingOf = (topic: string): string | undefined => (topic === 'scenarios' ? pendingScenario() : undefined)
