// Which waypoint an object uses, by its own labels or those of its namespace, and why not.
import type { Waypoint } from './waypoint.ts'

/** A reference to a waypoint by name. */
export interface WaypointReference {
  readonly namespace: string
  readonly name: string
  /** Where the label stands that makes the reference. */
  readonly level: 'object' | 'namespace'
}

export interface Refusal {
  readonly reason: string
  readonly message: string
}

export type Attachment =
  /** No waypoint is referenced. */
  | { readonly kind: 'none' }
  | { readonly kind: 'refused'; readonly level: WaypointReference['level']; readonly refusal: Refusal }
  | {
      readonly kind: 'bound'
      readonly waypoint: Waypoint
      /** Whether ingress gateways go through it; absent where no label says. */
      readonly ingress?: boolean
      readonly canary?:
        | { readonly kind: 'bound'; readonly waypoint: Waypoint; readonly weight: number }
        | { readonly kind: 'refused'; readonly refusal: Refusal }
    }

export type Metadata = {
  readonly labels?: Readonly<Record<string, string>> | undefined
  readonly annotations?: Readonly<Record<string, string>> | undefined
}

/** The waypoint-related labels and annotations of a namespace. */
export interface NamespaceDefaults {
  readonly useWaypoint: string | undefined
  readonly useWaypointNamespace: string | undefined
  readonly ingressUseWaypoint: string | undefined
  readonly canary: string | undefined
  readonly canaryNamespace: string | undefined
  readonly canaryWeight: string | undefined
}

export function namespaceDefaultsOf({ labels, annotations }: Metadata): NamespaceDefaults {
  return {
    useWaypoint: labels?.['istio.io/use-waypoint'],
    useWaypointNamespace: labels?.['istio.io/use-waypoint-namespace'],
    ingressUseWaypoint: labels?.['istio.io/ingress-use-waypoint'],
    canary: labels?.['istio.io/use-waypoint-canary'],
    canaryNamespace: labels?.['istio.io/use-waypoint-canary-namespace'],
    canaryWeight: annotations?.['istio.io/use-waypoint-canary-weight'],
  }
}

/** How waypoints are found while an attachment is resolved. */
export interface WaypointLookup {
  waypoint(namespace: string, name: string): Waypoint | undefined
  /** Whether the waypoint's listener admits routes of this namespace. */
  admits(waypoint: Waypoint, namespace: string): boolean
  /** Defaults of the object's namespace; asked only where the object itself does not say. */
  namespaceDefaults(): NamespaceDefaults | undefined
}

/** A Service or ServiceEntry. One that is seen in its namespace only has no waypoint elsewhere. */
type ServiceObject = Metadata & { readonly namespace: string; readonly confinedToNamespace: boolean }

/** The waypoint for traffic addressed to a service. */
export function attachService(lookup: WaypointLookup, object: ServiceObject): Attachment {
  const managed = object.labels?.['gateway.istio.io/managed']
  if (managed === 'istio.io-mesh-controller' || managed === 'istio.io-eastwest-controller') return { kind: 'none' }
  const primary = attach(lookup, object, 'service')
  if (primary.kind !== 'bound') return primary
  const { waypoint } = primary
  const forbidden = crossNamespaceRefusal(object, waypoint)
  if (forbidden !== undefined) return { kind: 'refused', level: 'object', refusal: forbidden }
  const ingressText = object.labels?.['istio.io/ingress-use-waypoint'] ?? lookup.namespaceDefaults()?.ingressUseWaypoint
  const canary = attachCanary(lookup, object, waypoint)
  return {
    kind: 'bound',
    waypoint,
    ...(ingressText === undefined ? {} : { ingress: isTrue(ingressText) }),
    ...(canary === undefined ? {} : { canary }),
  }
}

/** The waypoint for traffic addressed to a workload. */
export function attachWorkload(lookup: WaypointLookup, object: Metadata & { readonly namespace: string }): Attachment {
  const attachment = attach(lookup, object, 'workload')
  const inherited = attachment.kind === 'refused' && attachment.level === 'namespace'
  if (inherited && attachment.refusal.reason === 'UnsupportedTrafficType') return { kind: 'none' }
  return attachment
}

/** A boolean as Go's strconv.ParseBool accepts it for true. */
export function isTrue(text: string | undefined): boolean {
  return text !== undefined && ['1', 't', 'T', 'TRUE', 'true', 'True'].includes(text)
}

function attach(
  lookup: WaypointLookup,
  object: Metadata & { readonly namespace: string },
  traffic: 'service' | 'workload',
): Attachment {
  const reference = referenceOf(lookup, object)
  if (reference === undefined) return { kind: 'none' }
  const found = resolve(lookup, reference, object.namespace, traffic)
  return found.kind === 'found'
    ? { kind: 'bound', waypoint: found.waypoint }
    : { kind: 'refused', level: reference.level, refusal: found.refusal }
}

function referenceOf(
  lookup: WaypointLookup,
  object: Metadata & { readonly namespace: string },
): WaypointReference | undefined {
  const own = object.labels?.['istio.io/use-waypoint']
  if (own !== undefined) {
    const namespace = object.labels?.['istio.io/use-waypoint-namespace'] ?? object.namespace
    return own === 'none' ? undefined : { namespace, name: own, level: 'object' }
  }
  const inherited = lookup.namespaceDefaults()
  if (inherited?.useWaypoint === undefined || inherited.useWaypoint === 'none') return undefined
  const namespace = inherited.useWaypointNamespace ?? object.namespace
  return { namespace, name: inherited.useWaypoint, level: 'namespace' }
}

type Resolved =
  | { readonly kind: 'found'; readonly waypoint: Waypoint }
  | { readonly kind: 'refused'; readonly refusal: Refusal }

function resolve(
  lookup: WaypointLookup,
  reference: { readonly namespace: string; readonly name: string },
  namespace: string,
  traffic: 'service' | 'workload',
): Resolved {
  const refuse = (reason: string, message: string): Resolved => ({ kind: 'refused', refusal: { reason, message } })
  const waypoint = lookup.waypoint(reference.namespace, reference.name)
  if (waypoint === undefined) return refuse('WaypointIsNotReady', `waypoint ${quoted(reference)} is not ready`)
  if (!lookup.admits(waypoint, namespace)) {
    const message = `we are not permitted to attach to waypoint ${quoted(reference)} (missing allowedRoutes?)`
    return refuse('AttachmentDenied', message)
  }
  if (waypoint.trafficType !== 'all' && waypoint.trafficType !== traffic) {
    const message = `attempting to bind to traffic type "${traffic}" which the waypoint ${quoted(reference)} does not support`
    return refuse('UnsupportedTrafficType', message)
  }
  return { kind: 'found', waypoint }
}

function crossNamespaceRefusal(object: ServiceObject, waypoint: Waypoint): Refusal | undefined {
  if (!object.confinedToNamespace || waypoint.namespace === object.namespace) return undefined
  return {
    reason: 'CrossNamespaceWaypointForbidden',
    message: `cannot bind to waypoint ${quoted(waypoint)} in another namespace: cross-namespace waypoint binding is not permitted for a ServiceEntry with NAMESPACE visibility`,
  }
}

function attachCanary(
  lookup: WaypointLookup,
  object: ServiceObject,
  primary: Waypoint,
): Extract<Attachment, { kind: 'bound' }>['canary'] {
  const refuse = (reason: string, message: string) => ({ kind: 'refused' as const, refusal: { reason, message } })
  const inherited = object.labels?.['istio.io/use-waypoint'] === undefined ? lookup.namespaceDefaults() : undefined
  const own = object.labels?.['istio.io/use-waypoint-canary']
  const name = own ?? inherited?.canary
  if (name === undefined || name === '' || name === 'none') return undefined
  const namespaceLabel =
    own === undefined ? inherited?.canaryNamespace : object.labels?.['istio.io/use-waypoint-canary-namespace']
  const reference = { namespace: namespaceLabel ?? object.namespace, name }
  if (reference.namespace === primary.namespace && name === primary.name) {
    return refuse('CanarySameAsPrimary', `canary waypoint ${quoted(reference)} must differ from the primary waypoint`)
  }
  const weightText = object.annotations?.['istio.io/use-waypoint-canary-weight'] ?? inherited?.canaryWeight ?? '0'
  const weight = /^\d{1,3}$/.test(weightText) ? Number(weightText) : Number.NaN
  if (!(weight <= 100)) {
    const message = `canary waypoint ${quoted(reference)} has an invalid weight; must be an integer in [0,100]`
    return refuse('CanaryInvalidWeight', message)
  }
  const found = resolve(lookup, reference, object.namespace, 'service')
  if (found.kind === 'refused') return found
  const forbidden = crossNamespaceRefusal(object, found.waypoint)
  return forbidden === undefined
    ? { kind: 'bound', waypoint: found.waypoint, weight }
    : { kind: 'refused', refusal: forbidden }
}

function quoted({ namespace, name }: { readonly namespace: string; readonly name: string }): string {
  return `"${namespace}/${name}"`
}
