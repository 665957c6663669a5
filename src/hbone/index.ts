// Tunnels of the mesh (HBONE): TCP connections carried as HTTP/2 CONNECT streams over mutual TLS with SPIFFE identities.
// In: connected sockets, certificates, whom to accept. Out: byte streams, and a relay between two of them.
export { type ClientOptions, openTunnelConnection } from './client.ts'
export { HboneError, type HboneErrorCode } from './errors.ts'
export { expectOneOf, expectTrustDomain, type PeerCertificate, spiffeIdsOf } from './peer.ts'
export { createTunnelPool, type PoolOptions, type PoolTarget, type TunnelPool } from './pool.ts'
export { type Relay, type RelayCounts, type RelayEnd, type RelayObserver, type RelayOutcome, relay } from './relay.ts'
export { type ServerOptions, serveTunnels } from './server.ts'
export {
  type ConnectRequest,
  defaultHttp2Options,
  type Http2Options,
  type PeerCheck,
  type TlsCredentials,
  type TlsOptions,
  type Tunnel,
  type TunnelConnection,
  type TunnelHeaders,
  type TunnelRequest,
  type TunnelServerConnection,
} from './types.ts'
