// Where the data plane listens, as the configuration says.
import type { ZtunnelConfig } from './config/index.ts'
import type { DataPlaneOptions } from './dataplane/index.ts'

type PortSettings = Pick<
  ZtunnelConfig,
  'outboundPort' | 'inboundPlaintextPort' | 'inboundHbonePort' | 'socks5Port' | 'dnsProxyAddress'
>

export function dataPlanePorts(config: PortSettings): Pick<DataPlaneOptions, 'ports' | 'dnsAddress'> {
  const { socks5Port, dnsProxyAddress } = config
  return {
    ports: {
      outbound: config.outboundPort,
      plaintext: config.inboundPlaintextPort,
      hbone: config.inboundHbonePort,
      dns: dnsProxyAddress.port,
      ...(socks5Port === undefined ? {} : { socks5: socks5Port }),
    },
    ...(dnsProxyAddress.host === 'localhost' ? {} : { dnsAddress: dnsProxyAddress.host }),
  }
}
