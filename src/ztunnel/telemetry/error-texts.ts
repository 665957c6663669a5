// The texts of connection errors, stable because users search logs for them.

export const errorTexts = {
  io: (cause: string) => `io error: ${cause}`,
  receive: (cause: string) => `receive: ${cause}`,
  send: (cause: string) => `send: ${cause}`,
  closing: (cause: string) => `while closing connection: ${cause}`,
  connect: (cause: string) => `connection failed: ${cause}`,
  hboneConnectTimeout: (cause: string) =>
    `connection timed out, maybe a NetworkPolicy is blocking HBONE port 15008: ${cause}`,
  policyChange: 'connection closed due to policy change',
  policyRejection: (reason: string) => `connection closed due to policy rejection: ${reason}`,
  revoked: 'connection closed: peer certificate revoked by CRL',
  drained: 'connection closed due to connection drain',
  drainTimeout: 'connection failed to drain within the timeout',
  http2: (cause: string) => `h2 failed: ${cause}`,
  tls: (cause: string) => `tls error: ${cause}`,
  tlsHandshake: (cause: string) => `tls handshake error: ${cause}`,
  identity: (cause: string) => `identity error: ${cause}`,
  unresolvedHostname: (uid: string) => `no ip addresses were resolved for workload: ${uid}`,
  resolvedWithoutAddress: (uid: string) =>
    `ip addresses were resolved for workload ${uid}, but valid dns response had no A/AAAA records`,
} as const
