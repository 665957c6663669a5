// Schemas of Gateway, ServiceEntry, WorkloadEntry, WorkloadGroup, Sidecar, EnvoyFilter and ProxyConfig.
import {
  connectionPool,
  destination,
  exclusive,
  int32,
  labels,
  labelsSelector,
  port,
  portNumber,
  serverTls,
  targetRefs,
  texts,
  uint32,
  workloadSelector,
} from './istio-schemas.ts'
import type { Schema } from './kind.ts'
import { anyObject, atMostOneOf, boolean, integer, keyedList, list, map, object, oneOfTexts, string } from './schema.ts'

export const gateway: Schema = object({
  selector: labels,
  servers: list(
    object({
      name: string(),
      'port!': port,
      bind: string(),
      'hosts!': texts,
      tls: serverTls,
      defaultEndpoint: string(),
    }),
  ),
})

const workloadFields = {
  address: string({ maxLength: 256, description: 'Address associated with the network endpoint without the port.' }),
  ports: map(integer({ minimum: 0, maximum: 4294967295 }), { maxProperties: 128 }),
  labels: map(string(), { maxProperties: 256 }),
  network: string({ maxLength: 2048 }),
  locality: string({ maxLength: 2048 }),
  weight: uint32,
  serviceAccount: string({ maxLength: 253 }),
}

export const workloadEntry: Schema = object(workloadFields)

const probe: Schema = object(
  {
    initialDelaySeconds: int32,
    timeoutSeconds: integer({ minimum: 0, format: 'int32' }),
    periodSeconds: integer({ minimum: 0, format: 'int32' }),
    successThreshold: integer({ minimum: 0, format: 'int32' }),
    failureThreshold: integer({ minimum: 0, format: 'int32' }),
    httpGet: object({
      path: string(),
      'port!': portNumber,
      host: string(),
      scheme: string(),
      httpHeaders: list(object({ name: string(), value: string() })),
    }),
    tcpSocket: object({ host: string(), 'port!': portNumber }),
    exec: object({ 'command!': texts }),
    grpc: object({ port: portNumber, service: string() }),
  },
  atMostOneOf('httpGet', 'tcpSocket', 'exec', 'grpc'),
)

export const workloadGroup: Schema = object({
  metadata: object({
    labels: map(string(), { maxProperties: 256 }),
    annotations: map(string(), { maxProperties: 256 }),
  }),
  'template!': workloadEntry,
  probe,
})

export const serviceEntry: Schema = object({
  'hosts!': list(string(), { minItems: 1, maxItems: 256 }),
  addresses: list(string({ maxLength: 64 }), { maxItems: 256 }),
  ports: keyedList(
    ['name'],
    object({
      'number!': integer({ minimum: 1, maximum: 65535 }),
      protocol: string({ maxLength: 256 }),
      'name!': string({ maxLength: 256 }),
      targetPort: integer({ minimum: 1, maximum: 65535 }),
    }),
    { maxItems: 256 },
  ),
  location: oneOfTexts('MESH_EXTERNAL', 'MESH_INTERNAL'),
  resolution: oneOfTexts('NONE', 'STATIC', 'DNS', 'DNS_ROUND_ROBIN', 'DYNAMIC_DNS'),
  endpoints: list(workloadEntry, { maxItems: 4096 }),
  workloadSelector: labelsSelector,
  exportTo: texts,
  subjectAltNames: texts,
})

const captureMode = oneOfTexts('DEFAULT', 'IPTABLES', 'NONE')
const listenerPort: Schema = object({ number: portNumber, protocol: string(), name: string(), targetPort: portNumber })

export const sidecar: Schema = object({
  workloadSelector: labelsSelector,
  ingress: list(
    object({
      'port!': listenerPort,
      bind: string(),
      captureMode,
      defaultEndpoint: string(),
      tls: serverTls,
      connectionPool,
    }),
  ),
  egress: list(object({ port: listenerPort, bind: string(), captureMode, 'hosts!': texts })),
  inboundConnectionPool: connectionPool,
  outboundTrafficPolicy: object({ mode: oneOfTexts('REGISTRY_ONLY', 'ALLOW_ANY'), egressProxy: destination }),
})

const filterMatch: Schema = object({ name: string(), subFilter: object({ name: string() }) })

const envoyMatch: Schema = object(
  {
    context: oneOfTexts('ANY', 'SIDECAR_INBOUND', 'SIDECAR_OUTBOUND', 'GATEWAY', 'WAYPOINT'),
    proxy: object({ proxyVersion: string(), metadata: labels }),
    listener: object({
      name: string(),
      portNumber,
      portName: string(),
      listenerFilter: string(),
      filterChain: object({
        name: string(),
        sni: string(),
        transportProtocol: string(),
        applicationProtocols: string(),
        destinationPort: uint32,
        transportSocket: filterMatch,
        filter: filterMatch,
      }),
    }),
    routeConfiguration: object({
      name: string(),
      portNumber,
      portName: string(),
      gateway: string(),
      vhost: object({
        name: string(),
        domainName: string(),
        route: object({ name: string(), action: oneOfTexts('ANY', 'ROUTE', 'REDIRECT', 'DIRECT_RESPONSE') }),
      }),
    }),
    cluster: object({ name: string(), service: string(), subset: string(), portNumber }),
    waypoint: object({ portNumber, filter: filterMatch, route: object({ name: string() }) }),
  },
  atMostOneOf('listener', 'routeConfiguration', 'cluster', 'waypoint'),
)

export const envoyFilter: Schema = object(
  {
    workloadSelector: labelsSelector,
    targetRefs,
    priority: int32,
    configPatches: list(
      object({
        applyTo: oneOfTexts(
          'INVALID',
          'LISTENER',
          'FILTER_CHAIN',
          'NETWORK_FILTER',
          'HTTP_FILTER',
          'ROUTE_CONFIGURATION',
          'VIRTUAL_HOST',
          'HTTP_ROUTE',
          'CLUSTER',
          'EXTENSION_CONFIG',
          'BOOTSTRAP',
          'LISTENER_FILTER',
        ),
        match: envoyMatch,
        patch: object({
          operation: oneOfTexts(
            'INVALID',
            'MERGE',
            'ADD',
            'REMOVE',
            'INSERT_BEFORE',
            'INSERT_AFTER',
            'INSERT_FIRST',
            'REPLACE',
            'MERGE_AND_REPLACE_LIST',
          ),
          value: anyObject(),
          filterClass: oneOfTexts('UNSPECIFIED', 'AUTHN', 'AUTHZ', 'STATS'),
        }),
      }),
    ),
  },
  exclusive('workloadSelector', ['targetRefs']),
)

export const proxyConfig: Schema = object({
  selector: workloadSelector,
  concurrency: integer({ minimum: 0, format: 'int32', nullable: true }),
  environmentVariables: map(string({ maxLength: 2048 })),
  image: object({ imageType: string() }),
})

/** Modes of a match, as several kinds name them. */
export const trafficMode = (...undefinedMode: string[]): Schema =>
  oneOfTexts(...undefinedMode, 'CLIENT', 'SERVER', 'CLIENT_AND_SERVER')

export const isSet = boolean({ nullable: true })
