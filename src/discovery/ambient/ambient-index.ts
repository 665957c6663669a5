// The ambient index: assembles the graph from objects to the resources of the Workload API.
import type { Collection } from '../../collections/index.ts'
import type { ResourceSource } from '../../xds/index.ts'
import { createBase } from './base.ts'
import { type ObjectConditions, serviceEntryConditions, waypointBound } from './conditions.ts'
import { encodeAuthorization, encodeService, encodeWorkload, equalEncoded } from './encoded.ts'
import { countEndpoints, type EndpointCounts } from './endpoint-counts.ts'
import type { UnusedGateway } from './gateway-services.ts'
import type { AmbientInputs } from './inputs.ts'
import { type PublishedService, type ServiceInfo, serviceKey, type WorkloadInfo } from './model.ts'
import { compareGateways, type NetworkGateway } from './networks.ts'
import { createObjectGraph } from './object-graph.ts'
import { createPolicyGraph } from './policy-graph.ts'
import { createServiceGraph } from './service-graph.ts'
import { serviceMessage } from './services/message.ts'
import { type AmbientSettings, defaultTrustDomain } from './settings.ts'
import { addressSource, authorizationSource, workloadSource } from './sources.ts'
import { createWorkloadGraph } from './workload-graph.ts'
import { splitHorizonWorkload } from './workloads/split-horizon.ts'

export interface AmbientIndex {
  readonly addresses: ResourceSource
  /** The workloads alone, for clients of the type Workload. */
  readonly workloads: ResourceSource
  readonly authorizations: ResourceSource
  /** The conditions that objects of the config cluster must carry, by `<kind>/<namespace>/<name>`. */
  readonly conditions: Collection<ObjectConditions>
  /** Values of AuthorizationPolicies that were left out because they cannot be read, by input key. */
  readonly invalidPolicyValues: Collection<readonly string[]>
  /** Clusters whose ports of a service that is merged are others than those that count, by service key. */
  readonly differingPorts: Collection<readonly string[]>
  /** The services of the config cluster that are served, by service key. */
  readonly services: Collection<PublishedService>
  readonly gateways: Collection<NetworkGateway>
  /** Gateways of mesh networks that node proxies cannot use, and why. */
  readonly unusedGateways: Collection<UnusedGateway>
  /** Counted when it is called. */
  readonly endpointCounts: () => EndpointCounts
  /** True once every input has been read once. */
  readonly synced: boolean
  readonly whenSynced: Promise<void>
}

/** Derives the index from its inputs, in the inputs' graph. */
export function createAmbientIndex({
  inputs,
  settings,
}: {
  readonly inputs: AmbientInputs
  readonly settings: AmbientSettings
}): AmbientIndex {
  const { graph } = inputs
  const { clusterId, multiNetwork } = settings
  const objects = createObjectGraph(inputs, settings)
  const base = createBase(objects, settings)
  const services = createServiceGraph(objects, base, settings)
  const policies = createPolicyGraph(objects, base, services, settings)
  const { workloads, entryAttachments, podReferences } = createWorkloadGraph(
    objects,
    base,
    services,
    policies,
    settings,
  )

  // Where nobody says which network this cluster is on, its workloads that no gateway leads to must be reached directly.
  const isLocal = ({ message, cluster }: WorkloadInfo, network: string): boolean =>
    message.network === network || (network === '' && cluster === clusterId && message.networkGateway === undefined)
  const isGateway = ({ message }: WorkloadInfo): boolean => message.uid.startsWith('NetworkGateway/')
  const elsewhere = graph.derive('workloads/elsewhere', workloads, (context, info) =>
    multiNetwork && !isLocal(info, base.networks.networkOf(context, clusterId)) && !isGateway(info) ? info : undefined,
  )
  const here = multiNetwork
    ? graph.derive('workloads/here', workloads, (context, info) =>
        isLocal(info, base.networks.networkOf(context, clusterId)) || isGateway(info) ? info : undefined,
      )
    : workloads
  const elsewhereByService = graph.index('workloads/elsewhere/service', elsewhere, ({ message }) =>
    Object.keys(message.services),
  )

  const remoteOnly = graph.group('services/remote/groups', services.remote, ({ namespace, hostname }) => [
    serviceKey(namespace, hostname),
  ])
  const standIns = graph.derive('services/remote/bases', remoteOnly, (_, infos): PublishedService | undefined => {
    const [info] = infos.toSorted((a, b) => (a.cluster < b.cluster ? -1 : 1))
    return info === undefined ? undefined : { info, canonical: true }
  })
  const served = graph.join('services/served', [services.local, standIns])
  const serviceMessages = graph.derive('services/messages', served, (context, service, key) => {
    if (service.info.scope !== 'GLOBAL') return serviceMessage(service, [], [])
    const others = context.listBy(services.remoteByService, key)
    const identities = context.listBy(elsewhereByService, key, {
      select: ({ message }) =>
        `spiffe://${message.trustDomain || defaultTrustDomain}/ns/${message.namespace}/sa/${message.serviceAccount || 'default'}`,
    })
    return serviceMessage(service, others, identities)
  })

  const differingPorts = graph.derive('services/differingPorts', services.local, (context, { info }, key) => {
    if (info.scope !== 'GLOBAL') return undefined
    const clusters = context
      .listBy(services.remoteByService, key)
      .filter((other) => portsText(other) !== portsText(info))
      .map(({ cluster }) => cluster)
    return clusters.length === 0 ? undefined : clusters
  })

  const farMembers = graph.group('workloads/elsewhere/members', elsewhere, ({ message }) =>
    Object.keys(message.services).map((key) => `${message.network} ${key}`),
  )
  const splitHorizon = graph.deriveMany('workloads/splitHorizon', farMembers, (context, members, group) => {
    const at = group.indexOf(' ')
    const [network, key] = [group.slice(0, at), group.slice(at + 1)]
    const service = context.get(served, key)
    if (service?.info.scope !== 'GLOBAL') return []
    const [gateway] = context.listBy(base.networks.gatewaysByNetwork, network).toSorted(compareGateways)
    if (gateway === undefined) return []
    const message = splitHorizonWorkload(
      key,
      service,
      members.map((one) => one.message),
      gateway,
      base.wireTrustDomain(context, gateway.cluster),
    )
    return [[message.uid, { cluster: gateway.cluster, message }] as const]
  })

  const equals = equalEncoded
  const addresses = graph.join(
    'addresses',
    [
      graph.derive('addresses/workloads', here, (_, { message }) => encodeWorkload(message), { equals }),
      graph.derive('addresses/splitHorizon', splitHorizon, (_, { message }) => encodeWorkload(message), { equals }),
      graph.derive('addresses/services', serviceMessages, (_, message) => encodeService(message), { equals }),
    ],
    { equals },
  )
  const authorizations = graph.derive(
    'authorizations',
    policies.authorizations,
    (_, message) => encodeAuthorization(message),
    { equals },
  )

  return {
    addresses: addressSource(graph, addresses),
    workloads: workloadSource(addresses),
    authorizations: authorizationSource(authorizations),
    endpointCounts: () => countEndpoints(podReferences, objects.collections.pods, workloads),
    conditions: createConditions(),
    invalidPolicyValues: policies.invalidValues,
    differingPorts,
    services: services.local,
    gateways: base.networks.gateways,
    unusedGateways: base.networks.unused,
    get synced() {
      return addresses.synced && authorizations.synced
    },
    whenSynced: Promise.all([addresses.whenSynced, authorizations.whenSynced]).then(() => undefined),
  }

  function createConditions(): Collection<ObjectConditions> {
    const present = (conditions: ObjectConditions): [string, ObjectConditions][] =>
      conditions.conditions.length === 0
        ? []
        : [[`${conditions.kind}/${conditions.namespace}/${conditions.name}`, conditions]]
    const ofServices = graph.deriveMany('conditions/services', services.kubernetes, (_, info) =>
      info.cluster !== clusterId
        ? []
        : present({
            kind: 'Service',
            namespace: info.namespace,
            name: info.source.name,
            conditions: waypointBound(info.attachment, true),
          }),
    )
    const ofServiceEntries = graph.deriveMany('conditions/serviceEntries', services.entries, (context, info) => {
      const { entry, visibility, attachment } = info
      const { namespace = '', name } = entry.metadata
      const isServed = (entry.spec?.hosts ?? []).some((host) =>
        context.pick(
          services.local,
          serviceKey(namespace, host),
          (service) => service?.info.source.kind === 'ServiceEntry' && service.info.source.name === name,
        ),
      )
      if (visibility === 'NONE' || !isServed) return []
      const config = context.value(base.visibilityConfig)
      const conditions = serviceEntryConditions(entry, attachment, visibility, config)
      return present({ kind: 'ServiceEntry', namespace, name, conditions })
    })
    const ofWorkloadEntries = graph.deriveMany(
      'conditions/workloadEntries',
      objects.collections.workloadEntries,
      (context, { object }, key) => {
        const attachment = context.get(entryAttachments, key)
        const { namespace = '', name } = object.metadata
        const conditions = attachment === undefined ? [] : waypointBound(attachment, false)
        return present({ kind: 'WorkloadEntry', namespace, name, conditions })
      },
    )
    const ofPolicies = graph.deriveMany(
      'conditions/policies',
      objects.collections.authorizationPolicies,
      (context, { object }, key) => {
        const { namespace = '', name } = object.metadata
        return present({
          kind: 'AuthorizationPolicy',
          namespace,
          name,
          conditions: context.get(policies.conditions, key) ?? [],
        })
      },
    )
    return graph.join('conditions', [ofServices, ofServiceEntries, ofWorkloadEntries, ofPolicies])
  }
}

function portsText({ ports }: ServiceInfo): string {
  return ports
    .map(({ number, protocol }) => `${number}/${protocol}`)
    .sort()
    .join()
}
