// What the stream cases need a server for: the names of Envoy resources by the services of the case, and the real ambient index for its pods.
import type { KubeObject } from '../../../src/api/index.ts'
import { createGraph } from '../../../src/collections/index.ts'
import {
  type AmbientObjects,
  createAmbientIndex,
  createAmbientInputs,
  defaultAmbientSettings,
} from '../../../src/discovery/ambient/index.ts'
import type { EncodedResource, ResourceChange, ResourceSource, ServedType } from '../../../src/xds/index.ts'

export interface Endpoint {
  readonly address: string
  readonly port: number
  readonly health?: string
}

export interface Service {
  readonly hostname: string
  readonly ports: readonly { readonly number: number }[]
  readonly endpoints?: readonly Endpoint[]
}

export interface Pod {
  readonly name: string
  readonly namespace: string
  readonly serviceAccount: string
  readonly ip: string
  readonly node: string
  readonly ready: boolean
}

export interface ServerChange {
  readonly forcedPush?: boolean
  readonly setEndpoints?: { readonly hostname: string; readonly endpoints: readonly Endpoint[] }
  readonly addService?: Service
  readonly removeService?: string
  readonly addPod?: Pod
  readonly removePod?: string
  readonly apply?: KubeObject
  readonly delete?: { readonly kind: string; readonly namespace: string; readonly name: string }
}

export interface Registry {
  readonly types: readonly ServedType[]
  change(change: ServerChange): void
}

const envoy = 'type.googleapis.com/envoy.config.'
const always = ['BlackHoleCluster', 'PassthroughCluster', 'InboundPassthroughCluster']

export function createRegistry(services: readonly Service[], pods: readonly Pod[]): Registry {
  const known = new Map(services.map((service) => [service.hostname, service]))
  const clustersOf = (service: Service) => service.ports.map(({ number }) => `outbound|${number}||${service.hostname}`)
  const clusterNames = (): string[] => [...always, ...[...known.values()].flatMap(clustersOf)]

  const clusters = source(`${envoy}cluster.v3.Cluster`, clusterNames, (name) =>
    clusterNames().includes(name) ? { name } : undefined,
  )
  // A load assignment is given for whatever cluster is asked for: an unknown one has no endpoints.
  const endpoints = source(`${envoy}endpoint.v3.ClusterLoadAssignment`, clusterNames, (name) => ({
    name,
    endpoints: (known.get(name.split('|')[3] ?? '')?.endpoints ?? [])
      .filter(({ health }) => health === undefined || health === 'healthy')
      .map(({ address, port }) => `${address}:${port}`),
  }))
  const listeners = source(
    `${envoy}listener.v3.Listener`,
    () => ['virtualOutbound'],
    (name) => ({ name }),
  )
  const routes = source(
    `${envoy}route.v3.RouteConfiguration`,
    () => ['80', '8080', '9090'],
    (name) => ({ name }),
  )
  const ambient = createAmbient(pods)
  const envoySources = [clusters, endpoints, listeners, routes]

  function change(wanted: ServerChange): void {
    if (wanted.forcedPush === true) for (const one of envoySources) one.touch()
    if (wanted.setEndpoints !== undefined) {
      const { hostname, endpoints: next } = wanted.setEndpoints
      const service = known.get(hostname)
      if (service === undefined) throw new Error(`the case has no service ${hostname}`)
      known.set(hostname, { ...service, endpoints: next })
      endpoints.touch(clustersOf(service))
    }
    if (wanted.addService !== undefined) {
      known.set(wanted.addService.hostname, wanted.addService)
      for (const one of [clusters, endpoints]) one.touch(clustersOf(wanted.addService))
    }
    if (wanted.removeService !== undefined) {
      const service = known.get(wanted.removeService)
      known.delete(wanted.removeService)
      if (service !== undefined) for (const one of [clusters, endpoints]) one.touch(clustersOf(service))
    }
    ambient.change(wanted)
  }

  return {
    types: [
      { source: clusters, isWildcard: true, followedBy: endpoints.typeUrl },
      { source: endpoints, isWildcard: false },
      { source: listeners, isWildcard: true },
      { source: routes, isWildcard: false },
      ...ambient.types,
    ],
    change,
  }
}

interface Touchable extends ResourceSource {
  /** Makes these resources, or all, different from before. */
  touch(names?: readonly string[]): void
}

function source(
  typeUrl: string,
  names: () => readonly string[],
  content: (name: string) => object | undefined,
): Touchable {
  const listeners = new Set<(changes: readonly ResourceChange[]) => void>()
  const asked = new Set<string>()
  let touches = 0
  const get = (name: string): EncodedResource | undefined => {
    asked.add(name)
    const value = content(name)
    if (value === undefined) return undefined
    return { name, aliases: [], version: String(touches), body: new TextEncoder().encode(JSON.stringify(value)) }
  }
  return {
    typeUrl,
    synced: true,
    list: () => names().flatMap((name) => get(name) ?? []),
    get,
    subscribe(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    touch(touched = [...new Set([...names(), ...asked])]) {
      touches += 1
      const changes = touched.map((name): ResourceChange => {
        const now = get(name)
        return { name, ...(now === undefined ? {} : { new: now }) }
      })
      for (const listener of listeners) listener(changes)
    },
  }
}

function createAmbient(pods: readonly Pod[]): { types: readonly ServedType[]; change(wanted: ServerChange): void } {
  const graph = createGraph({
    report: (report) => {
      throw new Error(`${report.kind} in ${report.collection}`)
    },
  })
  const inputs = createAmbientInputs(graph)
  const index = createAmbientIndex({ inputs, settings: defaultAmbientSettings })
  const podFeed = inputs.feed('Kubernetes', 'pods')
  const policyFeed = inputs.feed('Kubernetes', 'authorizationPolicies')
  const add = (pod: Pod): void => podFeed.set(podObject(pod))
  inputs.meshConfig.set({})
  for (const pod of pods) add(pod)
  inputs.markSynced()
  return {
    types: [
      { source: index.authorizations, isWildcard: true, removals: 'last' },
      { source: index.addresses, isWildcard: true },
    ],
    change({ addPod, removePod, apply, delete: deleted }) {
      if (addPod !== undefined) add(addPod)
      if (removePod !== undefined) {
        const [namespace = '', name = ''] = removePod.split('/')
        podFeed.delete({ namespace, name })
      }
      if (apply !== undefined) policyFeed.set(apply as AmbientObjects['authorizationPolicies'])
      if (deleted !== undefined) policyFeed.delete(deleted)
    },
  }
}

function podObject({ name, namespace, serviceAccount, ip, node, ready }: Pod): AmbientObjects['pods'] {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace, annotations: { 'ambient.istio.io/redirection': 'enabled' } },
    spec: { nodeName: node, serviceAccountName: serviceAccount, containers: [] },
    status: {
      phase: 'Running',
      podIP: ip,
      podIPs: [{ ip }],
      conditions: [{ type: 'Ready', status: ready ? 'True' : 'False' }],
    },
  }
}
