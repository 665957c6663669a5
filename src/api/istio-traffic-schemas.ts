// Schemas of VirtualService and DestinationRule.
import {
  anyDuration,
  connectionPool,
  destination,
  duration,
  flag,
  headerOperations,
  int32,
  labels,
  percent,
  portNumber,
  stringMatch,
  texts,
  uint32,
  workloadSelector,
} from './istio-schemas.ts'
import type { Schema } from './kind.ts'
import { atMostOneOf, boolean, integer, list, map, number, object, oneOfTexts, string } from './schema.ts'

const httpMatch: Schema = object({
  name: string(),
  uri: stringMatch,
  scheme: stringMatch,
  method: stringMatch,
  authority: stringMatch,
  headers: map(stringMatch),
  withoutHeaders: map(stringMatch),
  queryParams: map(stringMatch),
  port: portNumber,
  sourceLabels: labels,
  sourceNamespace: string(),
  gateways: texts,
  ignoreUriCase: boolean(),
  statPrefix: string(),
})

const headers: Schema = object({ request: headerOperations, response: headerOperations })
const httpDestination: Schema = object({ 'destination!': destination, weight: int32, headers })

const redirect: Schema = object(
  {
    uri: string(),
    prefixRewrite: string(),
    authority: string(),
    port: portNumber,
    derivePort: oneOfTexts('FROM_PROTOCOL_DEFAULT', 'FROM_REQUEST_PORT'),
    scheme: string(),
    redirectCode: uint32,
  },
  atMostOneOf('port', 'derivePort'),
)

const fault: Schema = object({
  delay: object(
    { fixedDelay: duration, exponentialDelay: duration, percent: int32, percentage: percent },
    atMostOneOf('fixedDelay', 'exponentialDelay'),
  ),
  abort: object(
    { httpStatus: int32, grpcStatus: string(), http2Error: string(), percentage: percent },
    atMostOneOf('httpStatus', 'grpcStatus', 'http2Error'),
  ),
})

const corsPolicy: Schema = object({
  allowOrigins: list(stringMatch),
  allowOrigin: texts,
  allowMethods: texts,
  allowHeaders: texts,
  exposeHeaders: texts,
  maxAge: duration,
  allowCredentials: flag,
  unmatchedPreflights: oneOfTexts('UNSPECIFIED', 'FORWARD', 'IGNORE'),
})

const httpRoute: Schema = object({
  name: string(),
  match: list(httpMatch),
  route: list(httpDestination),
  redirect,
  directResponse: object({
    'status!': uint32,
    body: object({ string: string(), bytes: string({ format: 'binary' }) }, atMostOneOf('string', 'bytes')),
  }),
  delegate: object({ name: string(), namespace: string() }),
  rewrite: object({
    uri: string(),
    authority: string(),
    uriRegexRewrite: object({ match: string(), rewrite: string() }),
  }),
  timeout: duration,
  retries: object({
    attempts: int32,
    perTryTimeout: duration,
    retryOn: string(),
    retryRemoteLocalities: flag,
    retryIgnorePreviousHosts: flag,
    backoff: duration,
  }),
  fault,
  mirror: destination,
  mirrors: list(object({ 'destination!': destination, percentage: percent })),
  mirrorPercent: integer({ minimum: 0, maximum: 4294967295, nullable: true }),
  mirror_percent: integer({ minimum: 0, maximum: 4294967295, nullable: true }),
  mirrorPercentage: percent,
  corsPolicy,
  headers,
})

const l4Destination: Schema = object({ 'destination!': destination, weight: int32 })
const l4Match = {
  destinationSubnets: texts,
  port: portNumber,
  sourceLabels: labels,
  sourceNamespace: string(),
  gateways: texts,
}

export const virtualService: Schema = object({
  hosts: texts,
  gateways: texts,
  http: list(httpRoute),
  tls: list(object({ 'match!': list(object({ ...l4Match, 'sniHosts!': texts })), route: list(l4Destination) })),
  tcp: list(object({ match: list(object({ ...l4Match, sourceSubnet: string() })), route: list(l4Destination) })),
  exportTo: texts,
})

const consistentHash: Schema = object({
  httpHeaderName: string(),
  httpCookie: object({
    'name!': string(),
    path: string(),
    ttl: anyDuration,
    attributes: list(object({ 'name!': string(), value: string() })),
  }),
  useSourceIp: boolean(),
  httpQueryParameterName: string(),
  ringHash: object({ minimumRingSize: integer({ minimum: 0 }) }),
  maglev: object({ tableSize: integer({ minimum: 0 }) }),
  minimumRingSize: integer({ minimum: 0 }),
})

const failover: Schema = list(object({ from: string(), to: string() }))

const loadBalancer: Schema = object(
  {
    simple: oneOfTexts('UNSPECIFIED', 'LEAST_CONN', 'RANDOM', 'PASSTHROUGH', 'ROUND_ROBIN', 'LEAST_REQUEST'),
    consistentHash,
    backendUtilization: object({
      errorUtilizationPenaltyPercent: uint32,
      metricNamesForComputingUtilization: texts,
      weightExpirationPeriod: anyDuration,
      weightStabilizationPeriod: anyDuration,
      weightUpdatePeriod: anyDuration,
    }),
    localityLbSetting: object({
      enabled: flag,
      distribute: list(object({ from: string(), to: map(uint32) })),
      failover,
      failoverPriority: texts,
    }),
    zoneAwareLbSetting: object({
      enabled: flag,
      failover,
      failoverPriority: texts,
      minClusterSize: integer({ minimum: 0, nullable: true }),
    }),
    warmup: object({
      'duration!': duration,
      minimumPercent: number({ nullable: true }),
      aggression: number({ nullable: true }),
    }),
    warmupDurationSecs: duration,
  },
  atMostOneOf('simple', 'consistentHash', 'backendUtilization'),
)

const outlierDetection: Schema = object({
  consecutive5xxErrors: integer({ minimum: 0, nullable: true }),
  consecutiveGatewayErrors: integer({ minimum: 0, nullable: true }),
  consecutiveErrors: int32,
  splitExternalLocalOriginErrors: boolean(),
  consecutiveLocalOriginFailures: integer({ minimum: 0, nullable: true }),
  interval: duration,
  baseEjectionTime: duration,
  maxEjectionPercent: int32,
  minHealthPercent: int32,
  outlierDetectionHttpErrorCodes: list(integer({ minimum: 100, maximum: 599 })),
})

const clientTls: Schema = object({
  mode: oneOfTexts('DISABLE', 'SIMPLE', 'MUTUAL', 'ISTIO_MUTUAL'),
  clientCertificate: string(),
  privateKey: string(),
  caCertificates: string(),
  caCrl: string(),
  credentialName: string(),
  subjectAltNames: texts,
  sni: string(),
  insecureSkipVerify: flag,
})

const portPolicy = { loadBalancer, connectionPool, outlierDetection, tls: clientTls }

export const trafficPolicy: Schema = object({
  ...portPolicy,
  portLevelSettings: list(object({ port: object({ number: portNumber }), ...portPolicy }), { maxItems: 4096 }),
  tunnel: object({ protocol: string(), 'targetHost!': string(), 'targetPort!': portNumber }),
  proxyProtocol: object({ version: oneOfTexts('V1', 'V2') }),
  retryBudget: object({
    percent: number({ nullable: true, minimum: 0, maximum: 100 }),
    minRetryConcurrency: uint32,
    budgetInterval: anyDuration,
  }),
})

export const destinationRule: Schema = object({
  'host!': string(),
  trafficPolicy,
  subsets: list(object({ 'name!': string(), labels, trafficPolicy })),
  exportTo: texts,
  workloadSelector,
})
