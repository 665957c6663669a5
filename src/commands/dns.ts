// `lateen dns`: cluster DNS.
import { Command, InvalidArgumentError } from 'commander'
import { runDns } from '../standalone/index.ts'

export function create(): Command {
  return new Command('dns')
    .description('Answers the DNS names of services and pods, and passes other names on.')
    .option('--listen <ip:port>', 'address for UDP and TCP', parseAddress, { host: '0.0.0.0', port: 53 })
    .option('--health-port <port>', 'HTTP port for probes', '8080')
    .option('--cluster-domain <domain>', 'DNS domain of the cluster', 'cluster.local')
    .action(async (flags: { listen: { host: string; port: number }; healthPort: string; clusterDomain: string }) => {
      const stop = new AbortController()
      for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => stop.abort())
      const { listen, healthPort, clusterDomain } = flags
      await runDns({ ...listen, healthPort: Number(healthPort), domain: clusterDomain, signal: stop.signal })
    })
}

function parseAddress(text: string): { host: string; port: number } {
  const match = /^(?:\[([^\]]+)\]|([^:]+)):(\d+)$/.exec(text)
  const port = Number(match?.[3])
  if (match === null || port > 65_535) throw new InvalidArgumentError('expected IP:PORT, such as 0.0.0.0:53')
  return { host: match[1] ?? match[2] ?? '', port }
}
