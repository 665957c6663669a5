// The older Endpoints object of each Service with a selector, which some tools still read: the same pods as its EndpointSlices.
import { type KubeObject, type Resource, resources } from '../../api/index.ts'
import type { Cluster } from './cluster.ts'
import type { SlicePlan } from './endpoints.ts'
import { isSame, type Service } from './objects.ts'

const endpoints: Resource = { group: '', version: 'v1', kind: 'Endpoints', plural: 'endpoints', namespaced: true }

interface Address {
  readonly ip: string
  readonly hostname?: string
  readonly nodeName?: string
  readonly targetRef?: object
}

interface Subset {
  readonly addresses?: readonly Address[]
  readonly notReadyAddresses?: readonly Address[]
  readonly ports?: readonly object[]
}

type Endpoints = KubeObject & { readonly subsets?: readonly Subset[] }

/** More addresses than this are left out, as the API allows no more; EndpointSlices have them all. */
const addressLimit = 1000

/** Brings the Endpoints object of the service in line with its slices. It is deleted with its service. */
export async function writeEndpoints(cluster: Cluster, service: Service, plans: readonly SlicePlan[]): Promise<void> {
  const { namespace = '', name, labels = {} } = service.metadata
  const subsets = subsetsOf(plans)
  const existing = await cluster.client.get<Endpoints>(endpoints, { namespace, name })
  if (existing !== undefined && isSame(existing.subsets ?? [], subsets)) return
  const wanted: Endpoints = {
    apiVersion: 'v1',
    kind: 'Endpoints',
    metadata: existing?.metadata ?? {
      name,
      namespace,
      labels: { ...labels, 'endpoints.kubernetes.io/managed-by': 'endpoint-controller' },
      ownerReferences: [
        {
          apiVersion: 'v1',
          kind: resources.services.kind,
          name,
          uid: service.metadata.uid ?? '',
          controller: true,
          blockOwnerDeletion: true,
        },
      ],
    },
    ...(subsets.length === 0 ? {} : { subsets }),
  }
  if (existing === undefined) await cluster.client.create(endpoints, wanted)
  else await cluster.client.replace(endpoints, wanted)
}

function subsetsOf(plans: readonly SlicePlan[]): readonly Subset[] {
  const [first] = plans
  return plans
    .filter(({ addressType, endpoints: members }) => addressType === first?.addressType && members.length > 0)
    .map(({ endpoints: members, ports }) => {
      const addressesWhere = (isReady: boolean): Address[] =>
        members
          .filter(({ conditions }) => conditions?.terminating !== true && (conditions?.ready === true) === isReady)
          .slice(0, addressLimit)
          .map(({ addresses, hostname, nodeName, targetRef }) => ({
            ip: addresses[0] ?? '',
            ...(hostname === undefined ? {} : { hostname }),
            ...(nodeName === undefined ? {} : { nodeName }),
            ...(targetRef === undefined ? {} : { targetRef }),
          }))
      const [ready, notReady] = [addressesWhere(true), addressesWhere(false)]
      return {
        ...(ready.length > 0 ? { addresses: ready } : {}),
        ...(notReady.length > 0 ? { notReadyAddresses: notReady } : {}),
        ports: ports.map(({ name, port, protocol, appProtocol }) => ({
          ...(name === undefined || name === '' ? {} : { name }),
          port,
          protocol,
          ...(appProtocol === undefined ? {} : { appProtocol }),
        })),
      }
    })
    .filter(({ addresses, notReadyAddresses }) => addresses !== undefined || notReadyAddresses !== undefined)
}
