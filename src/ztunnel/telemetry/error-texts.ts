// The texts of connection errors, stable because users search logs for them.

export const errorTexts = {
  io: (cause: string) => `io error: ${cause}`,
  closing: (cause: string) => `while closing connection: ${cause}`,
  receive: (cause: string) => `receive: ${cause}`,
  send: (cause: string) => `send: ${cause}`,
  clientGone: 'client disconnected before all data was written',
  destinationGone: 'destination disconnected before all data was written',
  connect: (cause: string) => `connection failed: ${cause}`,
  hboneConnectTimeout: (cause: string) =>
    `connection timed out, maybe a NetworkPolicy is blocking HBONE port 15008: ${cause}`,
  trackingFailed: 'connection tracking failed',
  policyChange: 'connection closed due to policy change',
  policyRejection: (reason: string) => `connection closed due to policy rejection: ${reason}`,
  revoked: 'connection closed: peer certificate revoked by CRL',
  drained: 'connection closed due to connection drain',
  drainTimeout: 'connection failed to drain within the timeout',
  poolDraining: 'pool draining',
  http2Handshake: (cause: string) => `http2 handshake failed: ${cause}`,
  http2: (cause: string) => `h2 failed: ${cause}`,
  httpStatus: (status: string) => `http status: ${status}`,
  tls: (cause: string) => `tls error: ${cause}`,
  tlsHandshake: (cause: string) => `tls handshake error: ${cause}`,
  identity: (cause: string) => `identity error: ${cause}`,
  recursive: 'attempted recursive call to ourselves',
  unexpectedIdentity: (expected: readonly string[], got: readonly string[]) =>
    `identity verification error: peer did not present the expected SAN (${expected.join(',')}), got ${got.join(',')}`,
  unexpectedTrustDomain: (trustDomain: string, got: readonly string[]) =>
    `identity verification error: peer did not present the expected trustdomain (${trustDomain}), got ${got.join(',')}`,
  unresolvedHostname: (uid: string) => `no ip addresses were resolved for workload: ${uid}`,
  resolvedWithoutAddress: (uid: string) =>
    `ip addresses were resolved for workload ${uid}, but valid dns response had no A/AAAA records`,
} as const
