// Numbers and names of the redirection contract between the node agent, the node proxy and the kernel.

/** The node proxy sets this mark on all its sockets; marked traffic is never captured again. */
export const proxyMark = '0x539/0xfff'
/** Remembers connections whose packets came from the proxy, for replies to a preserved source address. */
export const connectionMark = '0x111/0xfff'
/** Marked replies are delivered locally by this routing table and rule. */
export const replyRoute = { table: '100', mark: connectionMark, preference: '32764' } as const

export const ports = { outbound: 15001, inboundPlaintext: 15006, inboundHbone: 15008, dns: 15053 } as const

/** Probes of the node's own processes are given these source addresses on the host and let through in the pod. */
export const probeSource = {
  ipv4: '169.254.7.127',
  ipv6: 'fd16:9254:7127:1337:ffff:ffff:ffff:ffff',
} as const

/** Sets of enrolled pods' addresses on the host. */
export const probeSets = { 4: 'istio-inpod-probes-v4', 6: 'istio-inpod-probes-v6' } as const

export const nftTables = {
  nat: 'istio-ambient-nat',
  mangle: 'istio-ambient-mangle',
  raw: 'istio-ambient-raw',
} as const
