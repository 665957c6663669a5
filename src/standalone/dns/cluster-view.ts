// The cluster's services and endpoints as DNS needs them, from the API.
import { type KubeObject, resources } from '../../api/index.ts'
import type { KubeClient } from '../../kube/index.ts'
import type { EndpointSlice, Service } from '../node/types.ts'
import type { ClusterView } from './records.ts'

export interface LiveView extends AsyncDisposable {
  readonly view: ClusterView
  readonly synced: Promise<void>
}

export function liveView(client: KubeClient, domain: string): LiveView {
  const services = client.informer<Service>(resources.services)
  const slices = client.informer<EndpointSlice>(resources.endpointSlices)
  const namespaces = client.informer<KubeObject>(resources.namespaces)
  let byService: Map<string, EndpointSlice[]> | undefined
  let byAddress: Map<string, string[]> | undefined
  const unsubscribe = [
    slices.subscribe(() => {
      byService = undefined
      byAddress = undefined
    }),
    services.subscribe(() => {
      byAddress = undefined
    }),
  ]
  const slicesOf = (namespace: string, service: string) => {
    byService ??= Map.groupBy(slices.list(), serviceKey)
    return byService.get(`${namespace}/${service}`) ?? []
  }
  const view: ClusterView = {
    domain,
    service: (namespace, name) => services.get({ namespace, name }),
    hasNamespace: (name) => namespaces.get({ name }) !== undefined,
    slices: slicesOf,
    namesOf(ip) {
      byAddress ??= reverseNames(services.list(), slicesOf, domain)
      return byAddress.get(ip) ?? []
    },
  }
  const informers = [services, slices, namespaces]
  return {
    view,
    synced: Promise.all(informers.map((informer) => informer.synced)).then(() => undefined),
    async [Symbol.asyncDispose]() {
      for (const end of unsubscribe) end()
      await Promise.all(informers.map((informer) => informer[Symbol.asyncDispose]()))
    },
  }
}

function serviceKey(slice: EndpointSlice): string {
  return `${slice.metadata.namespace}/${slice.metadata.labels?.['kubernetes.io/service-name'] ?? ''}`
}

function reverseNames(
  services: readonly Service[],
  slicesOf: (namespace: string, service: string) => readonly EndpointSlice[],
  domain: string,
): Map<string, string[]> {
  const names = new Map<string, string[]>()
  const add = (ip: string, name: string) => names.set(ip, [...(names.get(ip) ?? []), name])
  for (const service of services) {
    const { namespace = '', name } = service.metadata
    const base = `${name}.${namespace}.svc.${domain}`
    const clusterIPs = (service.spec?.clusterIPs ?? []).filter((ip) => ip !== 'None')
    for (const ip of clusterIPs) add(ip, base)
    for (const slice of slicesOf(namespace, name)) {
      for (const endpoint of slice.endpoints ?? []) {
        if (clusterIPs.length > 0 && endpoint.hostname === undefined) continue
        for (const ip of endpoint.addresses) add(ip, `${endpoint.hostname ?? ip.replace(/[.:]/g, '-')}.${base}`)
      }
    }
  }
  return names
}
