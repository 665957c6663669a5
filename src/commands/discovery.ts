// `lateen discovery`: the control plane.
import { availableParallelism } from 'node:os'
import { Command } from 'commander'
import { takeLibraryLog } from '../grpc/index.ts'
import { type DiscoveryFlags, readSettings, runDiscovery, tellIneffective } from '../istiod/index.ts'
import { createLogging, createRefusalLog, formatJson, formatPlain } from '../observability/index.ts'
import { readOutputLevels } from './output-levels.ts'
import { packageVersion } from './version.ts'

interface Flags extends DiscoveryFlags {
  readonly log_as_json?: boolean
  readonly log_output_level?: string
}

export function create(): Command {
  return new Command('discovery')
    .description('Control plane: reads the cluster, serves the Workload API over xDS, and signs workload certificates.')
    .option(
      '--kubeconfig <file>',
      'how to reach the API server (default: as kubectl finds it; in a pod, its service account)',
    )
    .option('-n, --namespace <namespace>', 'system namespace (default: POD_NAMESPACE, else istio-system)')
    .option('--meshConfig <file>', 'mesh config file (default: ./etc/istio/config/mesh, else the ConfigMap)')
    .option(
      '--networksConfig <file>',
      'mesh networks file (default: ./etc/istio/config/meshNetworks, else the ConfigMap)',
    )
    .option('--configDir <dir>', 'read mesh configuration from the manifests below a directory, not from the cluster')
    .option('--revision <name>', 'revision of this control plane (default: REVISION, else default)')
    .option(
      '--clusterRegistriesNamespace <namespace>',
      'where the Secrets of remote clusters are (default: the system namespace)',
    )
    .option('--clusterAliases <aliases>', 'alias=cluster,…')
    .option('--domain <domain>', 'DNS suffix of the cluster', 'cluster.local')
    .option('--clusterID <id>', 'id of the cluster (default: CLUSTER_ID, else Kubernetes)')
    .option('--httpAddr <address>', 'readiness and debug pages', ':8080')
    .option('--secureGRPCAddr <address>', 'xDS and certificates over TLS', ':15012')
    .option('--grpcAddr <address>', 'xDS without TLS, where clients are not authenticated (default: not served)')
    .option('--monitoringAddr <address>', 'metrics and debug pages', ':15014')
    .option('--profile <boolean>', 'profiles of the process may be taken from the debug port', 'true')
    .option('--shutdownDuration <duration>', 'bound of the graceful stop', '10s')
    .option('--keepaliveInterval <duration>', 'time between pings of idle connections', '30s')
    .option('--keepaliveTimeout <duration>', 'how long a ping may go unanswered', '10s')
    .option('--keepaliveMaxServerConnectionAge <duration>', 'connections are recycled after it (default: never)')
    .option('--caCertFile <file>', 'roots that client certificates are verified against')
    .option('--tlsCertFile <file>', 'serving certificate (default: signed by our own CA)')
    .option('--tlsKeyFile <file>', 'key of the serving certificate')
    .option('--tls-cipher-suites <names>', 'suites of TLS 1.2 by their IANA names')
    .option('--tls-min-version <version>', 'lowest version of TLS: 1.2 or 1.3')
    .option('--ctrlz_address <host>', 'where introspection listens', 'localhost')
    .option('--ctrlz_port <port>', 'port of introspection; 0: off', '9876')
    .option('--log_as_json', 'log lines are JSON')
    .option('--log_output_level <levels>', 'scope:level,… (default:info)')
    .allowUnknownOption()
    .allowExcessArguments()
    .action(run)
}

async function run(flags: Flags): Promise<void> {
  const settings = readSettings(flags, process.env, availableParallelism())
  const logging = createLogging({
    format: flags.log_as_json === true ? formatJson('msg') : formatPlain,
    ...(flags.log_output_level === undefined
      ? {}
      : { filter: readOutputLevels('--log_output_level', flags.log_output_level) }),
  })
  const grpcLine = createRefusalLog(logging.scope('grpc'))
  takeLibraryLog((line) => grpcLine(line, {}))
  tellIneffective(process.env, logging.scope('discovery'))
  const stop = new AbortController()
  process.once('SIGTERM', () => stop.abort())
  process.once('SIGINT', () => {
    stop.abort()
    process.once('SIGINT', () => process.exit(130))
  })
  await runDiscovery({ settings, version: packageVersion(), logging }, stop.signal)
  await logging.flush()
}
