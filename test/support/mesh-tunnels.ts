// A server of tunnels as the mesh has them, for tests.
import type { Socket } from 'node:net'
import {
  defaultHttp2Options,
  expectTrustDomain,
  serveTunnels,
  type TlsCredentials,
  type TunnelRequest,
} from '../../src/hbone/index.ts'

/** Serves whoever is of the trust domain `cluster.local`; settles as `serveTunnels` does. */
export function serveMeshTunnels(
  socket: Socket,
  credentials: TlsCredentials,
  handle: (request: TunnelRequest) => void,
): ReturnType<typeof serveTunnels> {
  const tls = { credentials, checkPeer: expectTrustDomain('cluster.local') }
  return serveTunnels(socket, { tls, http2: defaultHttp2Options }, handle)
}
