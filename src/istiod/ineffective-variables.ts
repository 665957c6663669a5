// Variables of istiod that are known and have no effect here: whoever sets one is told so, and what there is instead.
import type { Scope } from '../observability/index.ts'
import { booleanFlag, type Environment } from './setting-reader.ts'

export interface IneffectiveVariables {
  /** Why, or what counts instead. */
  readonly reason: string
  /** By name, the value that asks for what is done anyway; undefined: any value goes beyond that. */
  readonly names: Readonly<Record<string, string | undefined>>
}

const on = 'true'
const off = 'false'

export const ineffectiveVariables: readonly IneffectiveVariables[] = [
  {
    reason: 'changes wait for others as LATEEN_WORKLOAD_DEBOUNCE_AFTER and LATEEN_WORKLOAD_DEBOUNCE_MAX say',
    names: { PILOT_DEBOUNCE_AFTER: undefined, PILOT_DEBOUNCE_MAX: undefined, PILOT_ENABLE_EDS_DEBOUNCE: on },
  },
  {
    reason: 'each client has one message under way, and all of them share a budget of memory',
    names: { PILOT_PUSH_THROTTLE: '0' },
  },
  {
    reason: 'WorkloadEntries are read from the cluster that holds the configuration alone',
    names: { PILOT_ENABLE_CROSS_CLUSTER_WORKLOAD_ENTRY: off },
  },
  {
    reason: 'a Gateway that leads into a network always counts',
    names: { PILOT_MULTI_NETWORK_DISCOVER_GATEWAY_API: on },
  },
  {
    reason: 'node proxies resolve the host names of gateways',
    names: { RESOLVE_HOSTNAME_GATEWAYS: off },
  },
  {
    reason: 'a remote cluster asks for this control plane by the annotation topology.istio.io/controlPlaneClusters',
    names: { EXTERNAL_ISTIOD: off },
  },
  {
    reason:
      'Secrets of remote clusters are read from the cluster of --kubeconfig, kubeconfigs from PILOT_MULTICLUSTER_KUBECONFIG_PATH',
    names: { LOCAL_CLUSTER_SECRET_WATCHER: off },
  },
  {
    reason: 'workloads and services have all their addresses, of both families',
    names: { ISTIO_DUAL_STACK: on },
  },
  {
    reason: 'objects that are wrong are told of by conditions, events and /debug/problemsz as they come',
    names: { PILOT_ENABLE_ANALYSIS: off, PILOT_ANALYSIS_INTERVAL: undefined },
  },
  {
    reason: 'there are no ServiceImports and ServiceExports here',
    names: {
      MCS_API_GROUP: undefined,
      MCS_API_VERSION: undefined,
      ENABLE_MCS_AUTO_EXPORT: off,
      ENABLE_MCS_CLUSTER_LOCAL: off,
      ENABLE_MCS_HOST: off,
      ENABLE_MCS_SERVICE_DISCOVERY: off,
    },
  },
  {
    reason: 'the ports take TLS as --tls-min-version and --tls-cipher-suites say',
    names: { COMPLIANCE_POLICY: '' },
  },
  {
    reason: 'nodes are not tainted for the node agent',
    names: { PILOT_ENABLE_NODE_UNTAINT_CONTROLLERS: off, PILOT_NODE_UNTAINT_CONTROLLERS_TAINT_NAME: undefined },
  },
  {
    reason: 'it is about the configuration of Envoy, which is not made here: waypoints, gateways and sidecars',
    names: {
      AMBIENT_ENABLE_BAGGAGE: undefined,
      AMBIENT_ENABLE_MULTI_NETWORK_INGRESS: undefined,
      AMBIENT_ENABLE_MULTI_NETWORK_WAYPOINT: undefined,
      AMBIENT_SCOPED_ADDRESS_PUSHES: undefined,
      BLOCKED_CIDRS_IN_JWKS_URIS: undefined,
      DISABLE_TRACK_REMAINING_CB_METRICS: undefined,
      ENABLE_100_CONTINUE_HEADERS: undefined,
      ENABLE_ENHANCED_DESTINATIONRULE_MERGE: undefined,
      ENABLE_GATEWAY_API_INFERENCE_EXTENSION: undefined,
      ENABLE_GATEWAY_API_MANUAL_DEPLOYMENT: undefined,
      ENABLE_HCM_INTERNAL_NETWORKS: undefined,
      ENABLE_INGRESS_WAYPOINT_ROUTING: undefined,
      ENABLE_LAYERED_WAYPOINT_AUTHORIZATION_POLICIES: undefined,
      ENABLE_LOCALITY_WEIGHTED_LB_CONFIG: undefined,
      ENABLE_MULTICLUSTER_HEADLESS: undefined,
      ENABLE_PROXY_FIND_POD_BY_IP: undefined,
      ENABLE_SELECTOR_BASED_K8S_GATEWAY_POLICY: undefined,
      ENABLE_TLS_ON_SIDECAR_INGRESS: undefined,
      ENABLE_WILDCARD_HOST_SERVICE_ENTRIES_FOR_TLS: undefined,
      ISTIO_DELTA_XDS: undefined,
      ISTIO_ENABLE_IPV4_OUTBOUND_LISTENER_FOR_IPV6_CLUSTERS: undefined,
      JWKS_RESOLVER_INSECURE_SKIP_VERIFY: undefined,
      PILOT_ALLOW_ANY_DYNAMIC_DNS_MAX_HOSTS: undefined,
      PILOT_ALLOW_SIDECAR_SERVICE_INBOUND_LISTENER_MERGE: undefined,
      PILOT_AUTO_SEND_UNHEALTHY_ENDPOINTS: undefined,
      PILOT_DISABLE_MX_ALPN: undefined,
      PILOT_DNS_JITTER_DURATION: undefined,
      PILOT_DRAINING_LABEL: undefined,
      PILOT_ENABLE_ALPHA_GATEWAY_API: undefined,
      PILOT_ENABLE_ALPN_FILTER: undefined,
      PILOT_ENABLE_AMBIENT_WAYPOINTS: undefined,
      PILOT_ENABLE_CDS_CACHE: undefined,
      PILOT_ENABLE_EDS_FOR_HEADLESS_SERVICES: undefined,
      PILOT_ENABLE_GATEWAY_API: undefined,
      PILOT_ENABLE_GATEWAY_API_COPY_LABELS_ANNOTATIONS: undefined,
      PILOT_ENABLE_GATEWAY_API_DEPLOYMENT_CONTROLLER: undefined,
      PILOT_ENABLE_GATEWAY_API_GATEWAYCLASS_CONTROLLER: undefined,
      PILOT_ENABLE_GATEWAY_API_STATUS: undefined,
      PILOT_ENABLE_HEADLESS_FILTER_CHAIN_LISTENER: undefined,
      PILOT_ENABLE_MONGO_FILTER: undefined,
      PILOT_ENABLE_MULTIPLE_CUSTOM_AUTHZ_PROVIDERS: undefined,
      PILOT_ENABLE_MYSQL_FILTER: undefined,
      PILOT_ENABLE_PERSISTENT_SESSION_FILTER: undefined,
      PILOT_ENABLE_QUIC_LISTENERS: undefined,
      PILOT_ENABLE_RDS_CACHE: undefined,
      PILOT_ENABLE_REDIS_FILTER: undefined,
      PILOT_ENABLE_REMOTE_CREDENTIALS_CONTROLLER: undefined,
      PILOT_ENABLE_ROUTE_COLLAPSE_OPTIMIZATION: undefined,
      PILOT_ENABLE_SENDING_HBONE: undefined,
      PILOT_ENABLE_STRICT_GATEWAY_MERGING: undefined,
      PILOT_ENABLE_TELEMETRY_LABEL: undefined,
      PILOT_ENABLE_XDS_CACHE: undefined,
      PILOT_ENDPOINT_TELEMETRY_LABEL: undefined,
      PILOT_FILTER_GATEWAY_CLUSTER_CONFIG: undefined,
      PILOT_GATEWAY_API_CONTROLLER_NAME: undefined,
      PILOT_GATEWAY_API_DEFAULT_GATEWAYCLASS_NAME: undefined,
      PILOT_GATEWAY_TRANSPORT_SOCKET_CONNECT_TIMEOUT: undefined,
      PILOT_HBONE_INITIAL_STREAM_WINDOW_SIZE: undefined,
      PILOT_HTTP10: undefined,
      PILOT_JWT_ENABLE_REMOTE_JWKS: undefined,
      PILOT_JWT_PUB_KEY_REFRESH_INTERVAL: undefined,
      PILOT_MX_ADDITIONAL_LABELS: undefined,
      PILOT_PERSISTENT_SESSION_HEADER_LABEL: undefined,
      PILOT_PERSISTENT_SESSION_LABEL: undefined,
      PILOT_PREFER_SENDING_HBONE: undefined,
      PILOT_SCOPE_GATEWAY_TO_NAMESPACE: undefined,
      PILOT_SEND_UNHEALTHY_ENDPOINTS: undefined,
      PILOT_SIDECAR_PICK_BEST_SERVICE_NAMESPACE: undefined,
      PILOT_SIDECAR_USE_REMOTE_ADDRESS: undefined,
      PILOT_SKIP_VALIDATE_TRUST_DOMAIN: undefined,
      PILOT_SPAWN_UPSTREAM_SPAN_FOR_GATEWAY: undefined,
      PILOT_TRACE_SAMPLING: undefined,
      PILOT_UNIFIED_SIDECAR_SCOPE: undefined,
      PILOT_XDS_CACHE_INDEX_CLEAR_INTERVAL: undefined,
      PILOT_XDS_CACHE_SIZE: undefined,
      PILOT_XDS_CACHE_STATS: undefined,
      USE_B3_WITH_W3C_PROPAGATION: undefined,
    },
  },
  {
    reason: 'pods are not injected here, and objects are checked as they are read, not by a webhook',
    names: {
      ENABLE_NATIVE_SIDECARS: undefined,
      INJECT_ENABLED: undefined,
      INJECTION_WEBHOOK_CONFIG_NAME: undefined,
      VALIDATION_WEBHOOK_CONFIG_NAME: undefined,
    },
  },
]

/** What is done for node proxies alone, where they are served. */
const needAmbient = [
  'AMBIENT_ENABLE_DRY_RUN_AUTHORIZATION_POLICY',
  'AMBIENT_ENABLE_MULTI_NETWORK',
  'AMBIENT_ENABLE_STATUS',
  'PILOT_AUTO_ALLOW_WAYPOINT_POLICY',
]

/** One line for each variable that is set to something else than what is done here. */
export function tellIneffective(env: Environment, log: Pick<Scope, 'warn'>): void {
  if (!booleanFlag('PILOT_ENABLE_AMBIENT', env.PILOT_ENABLE_AMBIENT, true)) {
    for (const variable of needAmbient.filter((name) => booleanFlag(name, env[name], false))) {
      log.warn('a variable that is set has no effect here', { variable, reason: 'it needs PILOT_ENABLE_AMBIENT=true' })
    }
  }
  for (const { reason, names } of ineffectiveVariables) {
    for (const [variable, asIs] of Object.entries(names)) {
      const value = env[variable] ?? ''
      if (value === '' || meansTheSame(value, asIs)) continue
      log.warn('a variable that is set has no effect here', { variable, reason })
    }
  }
}

function meansTheSame(value: string, asIs: string | undefined): boolean {
  switch (asIs) {
    case on:
      return /^(true|t|1)$/i.test(value)
    case off:
      return /^(false|f|0)$/i.test(value)
    default:
      return value === asIs
  }
}
