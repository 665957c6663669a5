// Objects that every cluster has from the start: the namespaces, and the Service through which pods reach this API.
import { isIP } from 'node:net'
import type { KindDefinition, KubeObject } from '../../api/index.ts'
import { ApiError } from './errors.ts'
import { jsonEqual } from './json.ts'
import type { ApiCore } from './types.ts'

const namespaces = ['default', 'kube-system', 'kube-public', 'kube-node-lease']

export interface Endpoint {
  readonly address: string
  readonly port: number
}

/** `apiAddress`: the cluster IP of the Service `kubernetes`; `endpoint`: where this server really listens. */
export async function createInitialObjects(api: ApiCore, apiAddress: string, endpoint: Endpoint): Promise<void> {
  for (const name of namespaces) {
    if (api.objects.get('', 'namespaces', { name }) === undefined) {
      await ensure(api, 'v1', { apiVersion: 'v1', kind: 'Namespace', metadata: { name } })
    }
  }
  const labels = { component: 'apiserver', provider: 'kubernetes' }
  await ensure(api, 'v1', {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'kubernetes', namespace: 'default', labels },
    spec: {
      type: 'ClusterIP',
      clusterIP: apiAddress,
      ports: [{ name: 'https', port: 443, protocol: 'TCP', targetPort: endpoint.port }],
      sessionAffinity: 'None',
    },
  })
  const addressType = isIP(endpoint.address) === 6 ? 'IPv6' : 'IPv4'
  await ensure(api, 'v1', {
    apiVersion: 'v1',
    kind: 'Endpoints',
    metadata: {
      name: 'kubernetes',
      namespace: 'default',
      labels: { 'endpointslice.kubernetes.io/skip-mirror': 'true' },
    },
    subsets: [
      { addresses: [{ ip: endpoint.address }], ports: [{ name: 'https', port: endpoint.port, protocol: 'TCP' }] },
    ],
  } as KubeObject)
  await ensure(api, 'discovery.k8s.io/v1', {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name: 'kubernetes', namespace: 'default', labels: { 'kubernetes.io/service-name': 'kubernetes' } },
    addressType,
    endpoints: [{ addresses: [endpoint.address], conditions: { ready: true } }],
    ports: [{ name: 'https', port: endpoint.port, protocol: 'TCP' }],
  } as KubeObject)
}

/** Creates the object, or brings its own fields to what they should be. */
async function ensure(api: ApiCore, apiVersion: string, wanted: KubeObject): Promise<void> {
  const kind = api.kinds.byKind(apiVersion, wanted.kind)
  if (kind === undefined) throw new Error(`the kind ${wanted.kind} of ${apiVersion} is not served`)
  const found = current(api, kind, wanted)
  if (found === undefined) {
    await api.create(kind, wanted)
    return
  }
  const next = {
    ...found,
    ...withSpec(found, wanted),
    metadata: { ...found.metadata, labels: wanted.metadata.labels ?? {} },
  }
  if (jsonEqual(next, found)) return
  try {
    await api.update(kind, next as KubeObject)
  } catch (error) {
    // A cluster IP can't change: with another --service-cidr the Service is made anew.
    if (!(error instanceof ApiError) || error.code !== 422) throw error
    await api.delete(kind, wanted.metadata)
    await api.create(kind, wanted)
  }
}

function current(api: ApiCore, kind: KindDefinition, wanted: KubeObject): KubeObject | undefined {
  return api.objects.get(kind.storage?.group ?? kind.group, kind.plural, wanted.metadata)
}

function withSpec(found: KubeObject, wanted: KubeObject): object {
  const { metadata: _, spec, ...rest } = wanted
  if (spec === undefined) return rest
  return { ...rest, spec: { ...(found.spec as object), ...(spec as object) } }
}
