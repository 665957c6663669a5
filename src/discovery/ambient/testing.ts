// For tests: an ambient index over objects written in few words.
import type { KubeObject } from '../../api/index.ts'
import { type CollectionReport, createGraph, type Graph, type Pace } from '../../collections/index.ts'
import type { ResourceChange } from '../../xds/index.ts'
import { type AmbientIndex, createAmbientIndex } from './ambient-index.ts'
import { viewAmbient } from './debug-view.ts'
import { type AmbientInputs, type AmbientKind, createAmbientInputs } from './inputs.ts'
import { type AmbientSettings, defaultAmbientSettings } from './settings.ts'

export interface TestMesh {
  readonly graph: Graph
  readonly inputs: AmbientInputs
  readonly index: AmbientIndex
  readonly reports: readonly CollectionReport[]
  /** Puts objects into the config cluster in one wave. */
  apply(...objects: readonly KubeObject[]): void
  /** `Kind/namespace/name` */
  remove(...names: readonly string[]): void
  /** Names of the Addresses and Authorizations (marked with `policy `) that a change touches; removed ones with `-`. */
  touched(change: () => void): string[]
}

/** The input that objects of a kind go to. */
export const inputsByKind: Readonly<Record<string, AmbientKind>> = {
  Namespace: 'namespaces',
  Node: 'nodes',
  Pod: 'pods',
  Service: 'services',
  EndpointSlice: 'endpointSlices',
  Gateway: 'gateways',
  GatewayClass: 'gatewayClasses',
  ServiceEntry: 'serviceEntries',
  WorkloadEntry: 'workloadEntries',
  AuthorizationPolicy: 'authorizationPolicies',
  PeerAuthentication: 'peerAuthentications',
}

export function createTestMesh(settings: Partial<AmbientSettings> = {}, pace?: Pace): TestMesh {
  const reports: CollectionReport[] = []
  const graph = createGraph({ report: (report) => reports.push(report), ...(pace === undefined ? {} : { pace }) })
  const inputs = createAmbientInputs(graph)
  const all = { ...defaultAmbientSettings, clusterId: 'c1', ...settings }
  const index = createAmbientIndex({ inputs, settings: all })
  inputs.markSynced()
  const feed = (kind: string) => {
    const known = inputsByKind[kind]
    if (known === undefined) throw new TypeError(`no input for kind ${kind}`)
    return inputs.feed(all.clusterId, known)
  }
  return {
    graph,
    inputs,
    index,
    reports,
    apply: (...objects) =>
      graph.transaction(() => {
        for (const object of objects) feed(object.kind).set(object as never)
      }),
    remove: (...names) =>
      graph.transaction(() => {
        for (const text of names) {
          const [kind = '', namespace = '', name = ''] = text.split('/')
          feed(kind).delete(namespace === '' ? { name } : { namespace, name })
        }
      }),
    touched: (change) => {
      const names: string[] = []
      const note = (prefix: string) => (changes: readonly ResourceChange[]) => {
        for (const one of changes) names.push(`${one.new === undefined ? '-' : ''}${prefix}${one.name}`)
      }
      const stops = [index.addresses.subscribe(note('')), index.authorizations.subscribe(note('policy '))]
      names.length = 0
      change()
      for (const stop of stops) stop()
      return names.sort()
    },
  }
}

/** What is served under a name, as JSON with addresses as text; undefined where there is nothing. */
export function served({ index }: TestMesh, name: string): Fields | undefined {
  const { workloads, services } = viewAmbient(index)
  return ([...workloads, ...services] as Fields[]).find(
    ({ uid, namespace, hostname }) => uid === name || (uid === undefined && `${namespace}/${hostname}` === name),
  )
}

/** The names of all that is served as an Address, in order. */
export function servedNames({ index }: TestMesh): string[] {
  return [...index.addresses.list()].map(({ name }) => name).sort()
}

/** The conditions that an object (`Kind/namespace/name`) must carry, as `type status reason: message`. */
export function conditionsOf({ index }: TestMesh, name: string): string[] {
  const found = index.conditions.get(name)?.conditions ?? []
  return found.map(({ type, status, reason, message }) => `${type} ${status} ${reason}: ${message}`)
}

type Fields = Readonly<Record<string, unknown>>

const object = (apiVersion: string, kind: string, path: string, metadata: Fields, rest: Fields): KubeObject => {
  const [namespace, name] = path.includes('/') ? path.split('/') : [undefined, path]
  return {
    apiVersion,
    kind,
    metadata: { name: name ?? '', ...(namespace === undefined ? {} : { namespace }), ...metadata },
    ...rest,
  }
}

/** Objects by kind; `path` is `namespace/name`. */
export const make = {
  namespace: (name: string, labels: Fields = {}) => object('v1', 'Namespace', name, { labels }, {}),
  node: (name: string, labels: Fields = {}, metadata: Fields = {}) =>
    object('v1', 'Node', name, { labels, ...metadata }, {}),
  pod: (path: string, podIP: string, labels: Fields = {}, metadata: Fields = {}, spec: Fields = {}) =>
    object(
      'v1',
      'Pod',
      path,
      { labels, uid: path, ...metadata },
      {
        spec: { nodeName: 'node', serviceAccountName: 'sa', containers: [], ...spec },
        status: { phase: 'Running', podIP, conditions: [{ type: 'Ready', status: 'True' }] },
      },
    ),
  service: (path: string, clusterIP: string, selector: Fields = {}, metadata: Fields = {}) =>
    object('v1', 'Service', path, metadata, {
      spec: { clusterIP, selector, ports: [{ name: 'http', port: 80, targetPort: 8080 }] },
    }),
  waypoint: (path: string, options: { readonly ready?: boolean; readonly for?: string } = {}) =>
    object(
      'gateway.networking.k8s.io/v1',
      'Gateway',
      path,
      options.for === undefined ? {} : { labels: { 'istio.io/waypoint-for': options.for } },
      {
        spec: { gatewayClassName: 'istio-waypoint', listeners: [{ name: 'mesh', port: 15008, protocol: 'HBONE' }] },
        status: options.ready === false ? {} : { addresses: [{ type: 'Hostname', value: 'waypoint.example.com' }] },
      },
    ),
  gateway: (path: string, metadata: Fields, spec: Fields, addresses: readonly Fields[] = []) =>
    object('gateway.networking.k8s.io/v1', 'Gateway', path, metadata, {
      spec: {
        gatewayClassName: 'istio-waypoint',
        listeners: [{ name: 'mesh', port: 15008, protocol: 'HBONE' }],
        ...spec,
      },
      status: { addresses },
    }),
  gatewayClass: (name: string, metadata: Fields = {}) =>
    object('gateway.networking.k8s.io/v1', 'GatewayClass', name, metadata, {
      spec: { controllerName: 'istio.io/mesh-controller' },
    }),
  slice: (path: string, service: string, endpoints: readonly Fields[], rest: Fields = {}) =>
    object(
      'discovery.k8s.io/v1',
      'EndpointSlice',
      path,
      { labels: { 'kubernetes.io/service-name': service } },
      { addressType: 'IPv4', ports: [{ name: 'http', port: 9080, protocol: 'TCP' }], endpoints, ...rest },
    ),
  serviceEntry: (path: string, spec: Fields, metadata: Fields = {}) =>
    object('networking.istio.io/v1', 'ServiceEntry', path, metadata, {
      spec: { ports: [{ number: 80, name: 'http', protocol: 'HTTP' }], resolution: 'STATIC', ...spec },
    }),
  workloadEntry: (path: string, spec: Fields, metadata: Fields = {}) =>
    object('networking.istio.io/v1', 'WorkloadEntry', path, metadata, { spec }),
  policy: (path: string, spec: Fields) => object('security.istio.io/v1', 'AuthorizationPolicy', path, {}, { spec }),
  peer: (path: string, spec: Fields) => object('security.istio.io/v1', 'PeerAuthentication', path, {}, { spec }),
}
