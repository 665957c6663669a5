// EndpointSlices of Services with a selector: which pods serve each port, and in what condition they are.
import { matchesLabelSelector, resources } from '../../api/index.ts'
import type { Cluster } from './cluster.ts'
import { deleteExactly, own, source, startController } from './controller.ts'
import { endpointsOf, type SlicePlan } from './endpoints.ts'
import { writeEndpoints } from './endpoints-objects.ts'
import {
  controllerReference,
  type EndpointSlice,
  isSame,
  isTerminating,
  keyOf,
  keyText,
  type Pod,
  randomSuffix,
  type Service,
} from './objects.ts'

const managedBy = 'endpointslice.kubernetes.io/managed-by'
const manager = 'endpointslice-controller.k8s.io'
const serviceLabel = 'kubernetes.io/service-name'

export function startEndpointSlices(cluster: Cluster): AsyncDisposable {
  return startController(cluster, {
    name: 'endpoint-slices',
    sources: [
      own(cluster.services),
      source(cluster.pods, (pod) => servicesOf(cluster, pod)),
      source(cluster.endpointSlices, (slice) => {
        const name = slice.metadata.labels?.[serviceLabel]
        return name === undefined || !isOurs(slice) ? [] : [`${slice.metadata.namespace}/${name}`]
      }),
      source(
        cluster.nodes,
        () => cluster.services.list().map(keyText),
        (change) => change.kind !== 'updated' || zoneOf(change.object) !== zoneOf(change.old),
      ),
    ],
    work: (key) => reconcile(cluster, key),
  })
}

const zoneOf = (node: { metadata: { labels?: Record<string, string> } }): string | undefined =>
  node.metadata.labels?.['topology.kubernetes.io/zone']

const isOurs = (slice: EndpointSlice): boolean => slice.metadata.labels?.[managedBy] === manager

function servicesOf(cluster: Cluster, pod: Pod): string[] {
  return cluster.services
    .list()
    .filter((service) => service.metadata.namespace === pod.metadata.namespace && selects(service, pod))
    .map(keyText)
}

function selects(service: Service, pod: Pod): boolean {
  const { selector } = service.spec ?? {}
  if (selector === undefined || Object.keys(selector).length === 0) return false
  return matchesLabelSelector({ matchLabels: selector }, pod.metadata.labels ?? {})
}

async function reconcile(cluster: Cluster, key: string): Promise<undefined> {
  const { namespace = '', name } = keyOf(key)
  const service = cluster.services.get({ namespace, name })
  const existing = cluster.ownedEndpointSlices
    .of(service?.metadata.uid ?? '')
    .filter((slice) => isOurs(slice) && !isTerminating(slice))
  const hasSelector = Object.keys(service?.spec?.selector ?? {}).length > 0
  if (service === undefined || isTerminating(service) || service.spec?.type === 'ExternalName' || !hasSelector) {
    // Those of a deleted Service go with their owner; those of one that lost its selector would stay.
    if (service !== undefined && !isTerminating(service))
      for (const slice of existing) await deleteExactly(cluster, resources.endpointSlices, slice)
    return undefined
  }
  const pods = cluster.pods.list().filter((pod) => pod.metadata.namespace === namespace && selects(service, pod))
  const nodes = new Map(cluster.nodes.list().map((node) => [node.metadata.name, node]))
  const plans = endpointsOf(service, pods, nodes)
  await write(cluster, service, existing, plans)
  await writeEndpoints(cluster, service, plans)
  return undefined
}

/** Existing slices are used again, those with the same ports first; what is left over is deleted. */
async function write(
  cluster: Cluster,
  service: Service,
  existing: readonly EndpointSlice[],
  plans: readonly SlicePlan[],
): Promise<void> {
  const free = [...existing]
  for (const plan of plans) {
    const fitting = free.find((slice) => slice.addressType === plan.addressType && isSame(slice.ports, plan.ports))
    const reused = fitting ?? free.find((slice) => slice.addressType === plan.addressType)
    const wanted = { ...sliceOf(service, reused), ...plan }
    if (reused === undefined) {
      cluster.ownedEndpointSlices.created(await cluster.client.create(resources.endpointSlices, wanted))
      continue
    }
    free.splice(free.indexOf(reused), 1)
    const isCurrent =
      isSame(reused.endpoints, wanted.endpoints) &&
      isSame(reused.ports, wanted.ports) &&
      isSame(reused.metadata.labels, wanted.metadata.labels)
    if (!isCurrent) await cluster.client.replace(resources.endpointSlices, wanted)
  }
  for (const slice of free) {
    await deleteExactly(cluster, resources.endpointSlices, slice)
    cluster.ownedEndpointSlices.deleted(slice)
  }
}

function sliceOf(service: Service, reused: EndpointSlice | undefined): EndpointSlice {
  const { namespace = '', name, labels } = service.metadata
  const isHeadless = service.spec?.clusterIP === 'None'
  const metadata = reused?.metadata ?? {
    name: `${name}-${randomSuffix()}`,
    namespace,
    generateName: `${name}-`,
    ownerReferences: [controllerReference(service)],
  }
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    addressType: 'IPv4',
    endpoints: [],
    metadata: {
      ...metadata,
      labels: {
        ...labels,
        [serviceLabel]: name,
        [managedBy]: manager,
        ...(isHeadless ? { 'service.kubernetes.io/headless': '' } : {}),
      },
    },
  }
}
