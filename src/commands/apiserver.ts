// `lateen apiserver`: runs the embedded Kubernetes-compatible API until it is told to stop.
import { Command, InvalidArgumentError } from 'commander'
import ipaddr from 'ipaddr.js'
import { startEmbeddedApi } from '../kube/apiserver/index.ts'

interface Address {
  readonly host: string
  readonly port: number
}

interface Flags {
  readonly stateDir: string
  readonly listen?: readonly Address[]
  readonly serviceCidr: string
  readonly advertiseAddress?: string
}

export function create(): Command {
  return new Command('apiserver')
    .description(
      'Runs the embedded Kubernetes-compatible API over HTTPS. Its state is one file in the state directory.',
    )
    .requiredOption('--state-dir <dir>', 'directory of apiserver.db, pki/ and kubeconfig')
    .option('--listen <ip:port>', 'address to serve (repeatable; default 127.0.0.1:6443)', parseAddress)
    .option('--service-cidr <cidr>', 'range of the cluster IPs of Services', parseCidr, '10.96.0.0/16')
    .option(
      '--advertise-address <ip>',
      'address under which pods reach this server (default: the first --listen)',
      parseIp,
    )
    .action(run)
}

async function run(flags: Flags): Promise<void> {
  const { stateDir, serviceCidr, advertiseAddress, listen = [{ host: '127.0.0.1', port: 6443 }] } = flags
  const server = await startEmbeddedApi({
    stateDir,
    listen,
    serviceCidr,
    onError: (error) => process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`),
    ...(advertiseAddress === undefined ? {} : { advertiseAddress }),
  })
  const where = server.addresses.map(({ host, port }) => `https://${host.includes(':') ? `[${host}]` : host}:${port}`)
  process.stdout.write(`serving ${where.join(', ')}; kubeconfig ${server.kubeconfig}\n`)
  await new Promise<void>((resolve) => {
    process.once('SIGINT', () => resolve())
    process.once('SIGTERM', () => resolve())
  })
  await server[Symbol.asyncDispose]()
}

function parseAddress(text: string, before: readonly Address[] = []): readonly Address[] {
  const found = /^(?:\[([^\]]+)\]|([^:]+)):(\d+)$/.exec(text)
  const host = found?.[1] ?? found?.[2] ?? ''
  const port = Number(found?.[3])
  if (!ipaddr.isValid(host) || port > 65_535) {
    throw new InvalidArgumentError('expected IP:PORT, such as 127.0.0.1:6443 or [::1]:6443')
  }
  return [...before, { host, port }]
}

function parseCidr(text: string): string {
  if (!ipaddr.isValidCIDR(text)) throw new InvalidArgumentError('expected a range such as 10.96.0.0/16')
  return text
}

function parseIp(text: string): string {
  if (!ipaddr.isValid(text)) throw new InvalidArgumentError('expected an IP address')
  return text
}
