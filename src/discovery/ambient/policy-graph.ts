// From policy objects to Authorizations, and which of them a workload has to list.
import type { Condition } from '../../api/index.ts'
import type { Collection, ReadContext } from '../../collections/index.ts'
import type { security } from '../../proto/index.ts'
import type { Base } from './base.ts'
import { objectKey } from './inputs.ts'
import { containsLabels } from './labels.ts'
import type { AmbientObjectGraph } from './object-graph.ts'
import { convertAuthorizationPolicy } from './policies/authorization-policy.ts'
import {
  convertPeerPolicy,
  effectiveMode,
  oldest,
  peerPolicy,
  peerPolicyKeys,
  staticStrict,
  staticStrictName,
} from './policies/peer-authentication.ts'
import { selectedLabels } from './policies/selection.ts'
import { waypointAllow, waypointAllowKey } from './policies/waypoint-allow.ts'
import { waypointAccepted } from './policies/waypoint-status.ts'
import type { ServiceGraph } from './service-graph.ts'
import type { AmbientSettings } from './settings.ts'

export interface PolicyGraph {
  /** By `<namespace>/<name>`. */
  readonly authorizations: Collection<security.Authorization>
  /** ZtunnelAccepted or WaypointAccepted of each AuthorizationPolicy, by input key. */
  readonly conditions: Collection<readonly Condition[]>
  /** Values of AuthorizationPolicies that were left out because they cannot be read, by input key. */
  readonly invalidValues: Collection<readonly string[]>
  /** Keys of the AuthorizationPolicies and PeerAuthentications a workload has to list. */
  keysFor(context: ReadContext, namespace: string, labels: Readonly<Record<string, string>>): string[]
}

export function createPolicyGraph(
  { graph, collections }: AmbientObjectGraph,
  base: Base,
  services: ServiceGraph,
  settings: AmbientSettings,
): PolicyGraph {
  const { clusterId, dryRunPolicies } = settings
  const rootOf = (context: ReadContext): string => context.value(base.rootNamespace) ?? settings.systemNamespace

  const converted = graph.derive('policies/converted', collections.authorizationPolicies, (context, { object }) =>
    convertAuthorizationPolicy(object, { rootNamespace: rootOf(context), dryRunPolicies }),
  )
  const fromPolicies = graph.deriveMany('policies/authorizationPolicies', converted, (_, { message }) =>
    message === undefined ? [] : [[`${message.namespace}/${message.name}`, message] as const],
  )
  const selectors = graph.derive(
    'policies/selectors',
    collections.authorizationPolicies,
    (context, { object }, key) => {
      const labels = selectedLabels(object.spec)
      const sent = context.pick(converted, key, (one) => one?.message !== undefined)
      const { namespace = '', name } = object.metadata
      return labels === undefined || !sent ? undefined : { key: `${namespace}/${name}`, namespace, labels }
    },
  )
  const selectorsByNamespace = graph.index('policies/selectors/namespace', selectors, ({ namespace }) => [namespace])

  const peers = graph.derive('policies/peers', collections.peerAuthentications, (_, { object }) => peerPolicy(object))
  const selectorless = graph.group('policies/peers/selectorless', peers, ({ namespace, selector }) =>
    selector === undefined ? [namespace] : [],
  )
  const namespaceModes = graph.derive('policies/peers/modes', selectorless, (_, policies) => oldest(policies)?.mode)
  const peersBySelection = graph.index('policies/peers/namespace', peers, ({ namespace, selector }) =>
    selector === undefined ? [] : [namespace],
  )
  const baseMode = (context: ReadContext, namespace: string, own: ReturnType<typeof oldest>) => {
    const root = rootOf(context)
    return effectiveMode([
      own?.mode,
      namespace === root ? undefined : context.get(namespaceModes, namespace),
      context.get(namespaceModes, root),
    ])
  }
  const fromPeers = graph.deriveMany('policies/peerAuthentications', peers, (context, peer) => {
    if (peer.selector === undefined || peer.ports.length === 0 || peer.namespace === rootOf(context)) return []
    const message = convertPeerPolicy(baseMode(context, peer.namespace, peer), peer)
    return message === undefined ? [] : [[`${message.namespace}/${message.name}`, message] as const]
  })
  const anyPeer = graph.singleton('policies/peers/any', (context) =>
    context.list(peers, { select: () => true }).length > 0 ? true : undefined,
  )
  const strict = graph.deriveMany('policies/strict', anyPeer.collection, (context) => {
    const root = rootOf(context)
    return [[`${root}/${staticStrictName}`, staticStrict(root)] as const]
  })

  const podsOfWaypoints = graph.index('pods/waypoint', collections.pods, ({ cluster, object: { metadata } }) => {
    const gateway = metadata.labels?.['gateway.networking.k8s.io/gateway-name']
    return settings.autoAllowWaypoints && gateway !== undefined ? [objectKey(cluster, metadata.namespace, gateway)] : []
  })
  const principalsOfWaypoints = graph.derive(
    'policies/waypoints/principals',
    base.waypoints,
    (context, waypoint, key) => {
      if (!settings.autoAllowWaypoints) return undefined
      const accounts = context.listBy(podsOfWaypoints, key, {
        select: ({ object }) => object.spec?.serviceAccountName ?? '',
      })
      const trustDomain = base.trustDomainOf(context, waypoint.cluster)
      const principals = [...new Set(accounts)]
        .filter((account) => account !== '')
        .map((account) => `${trustDomain}/ns/${waypoint.namespace}/sa/${account}`)
      return principals.length === 0 ? undefined : { waypoint, principals }
    },
  )
  // Waypoints of one name in several clusters are one to the workloads behind them.
  const sameWaypoint = graph.group('policies/waypoints/name', principalsOfWaypoints, ({ waypoint }) => [
    waypointAllowKey(waypoint),
  ])
  const fromWaypoints = graph.derive('policies/waypoints', sameWaypoint, (_, found) => {
    const [first] = found
    const principals = [...new Set(found.flatMap((one) => one.principals))].sort()
    return first === undefined ? undefined : waypointAllow(first.waypoint, principals)
  })
  const authorizations = graph.join('policies', [fromPolicies, fromPeers, strict, fromWaypoints])

  const conditions = graph.derive(
    'policies/conditions',
    collections.authorizationPolicies,
    (context, { object }, key): readonly Condition[] => {
      const condition =
        context.pick(converted, key, (one) => one?.accepted) ??
        waypointAccepted(object, {
          rootNamespace: rootOf(context),
          gatewayClassController: (name) =>
            context.pick(
              collections.gatewayClasses,
              objectKey(clusterId, undefined, name),
              (found) => found?.object.spec?.controllerName,
            ),
          isWaypoint: (namespace, name) =>
            context.pick(base.waypoints, objectKey(clusterId, namespace, name), (found) => found !== undefined),
          attachment: (kind, namespace, name) =>
            kind === 'Service'
              ? context.pick(services.kubernetes, objectKey(clusterId, namespace, name), (one) => one?.attachment)
              : context.pick(services.entries, objectKey(clusterId, namespace, name), (one) => one?.attachment),
        })
      return condition === undefined ? [] : [condition]
    },
  )
  const invalidValues = graph.derive('policies/invalid', converted, (_, { invalid }) =>
    invalid.length === 0 ? undefined : invalid,
  )

  return {
    authorizations,
    conditions,
    invalidValues,
    keysFor: (context, namespace, labels) => {
      const root = rootOf(context)
      const selected = [...new Set([root, namespace])].flatMap((where) =>
        context.listBy(selectorsByNamespace, where, {
          where: (policy) => containsLabels(labels, policy.labels),
          select: (policy) => policy.key,
        }),
      )
      const own =
        namespace === root
          ? undefined
          : oldest(
              context.listBy(peersBySelection, namespace, {
                where: (peer) => containsLabels(labels, peer.selector ?? {}),
              }),
            )
      return [...selected.sort(), ...peerPolicyKeys(baseMode(context, namespace, own), own, root)]
    },
  }
}
