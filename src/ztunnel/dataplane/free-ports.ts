// Whether the ports of a proxy that serves its own namespace can be had: asked at the start, long before anything listens there.
import { closeSync } from 'node:fs'
import { createSocket } from '../../linux/index.ts'
import type { SocketAddress } from '../model.ts'
import { formatAddress } from '../state/address.ts'
import type { DataPlaneOptions } from './types.ts'

/**
 * Throws `failed to bind to address <addr>: <os error>` for the first port that somebody listens on. Our own listeners share their
 * ports among threads and would come up beside another process of the same user, which then gets a part of the connections.
 */
export function checkPortsAreFree(
  options: Pick<DataPlaneOptions, 'proxy' | 'ports' | 'ipv6' | 'dnsAddress'> & { readonly dns: boolean },
): void {
  const { proxy, ports, ipv6, dnsAddress } = options
  const everywhere = ipv6 ? '::' : '0.0.0.0'
  if (proxy) {
    for (const port of [ports.hbone, ports.plaintext, ports.outbound]) {
      checkIsFree('stream', { ip: everywhere, port })
    }
    if (ports.socks5 !== undefined) checkIsFree('stream', { ip: '127.0.0.1', port: ports.socks5 })
  }
  if (!options.dns) return
  const dns = { ip: dnsAddress ?? '127.0.0.1', port: ports.dns }
  checkIsFree('datagram', dns)
  checkIsFree('stream', dns)
}

function checkIsFree(type: 'stream' | 'datagram', address: SocketAddress): void {
  try {
    const family = address.ip.includes(':') ? 6 : 4
    // What is left of closed connections is no obstacle to a listener.
    closeSync(createSocket({ family, type, ...(type === 'stream' ? { reuseAddress: true } : {}), bind: address }).fd)
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    throw new Error(`failed to bind to address ${formatAddress(address)}: ${why}`, { cause: error })
  }
}
