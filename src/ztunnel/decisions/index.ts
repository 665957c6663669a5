// The decisions of the node proxy, as pure functions of the mesh view and a request.

export { type Authority, parseAuthority } from './authority.ts'
export { authorize, policyMatches, stringMatches } from './authorization.ts'
export { type Backend, chooseBackend, eligibleBackends } from './backends.ts'
export { type Baggage, buildBaggage, parseBaggage } from './baggage.ts'
export { gatewayDestination, waypointOf } from './gateways.ts'
export {
  buildForwarded,
  buildTraceparent,
  connectHeaders,
  createTraceContexts,
  parseForwardedHost,
  parseTraceparent,
  type TraceContext,
} from './headers.ts'
export { identityOf, parseSpiffeId, principal, sameIdentity, spiffeId } from './identity.ts'
export { decideInbound, decidePlaintext, readConnect } from './inbound.ts'
export { routeOutbound } from './outbound.ts'
export { encodeProxyHeader } from './proxy-protocol.ts'
export { responseHeaders } from './response.ts'
export type * from './types.ts'
