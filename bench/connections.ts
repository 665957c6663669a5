// Tunnel connections without proxies around them: each exchange opens a mutual TLS connection of its own and one tunnel on it, sends one
// byte and gets it back. Every pair of 64 loopback addresses once, one after another; both ends in this process.
import { once } from 'node:events'
import net from 'node:net'
import {
  defaultHttp2Options,
  expectOneOf,
  expectTrustDomain,
  openTunnelConnection,
  serveTunnels,
  type TlsOptions,
} from '../src/hbone/index.ts'
import { createTestPki } from '../test/support/test-pki.ts'

const addresses = Array.from({ length: 64 }, (_, index) => `127.0.1.${index + 1}`)
const http2 = defaultHttp2Options

export async function run(): Promise<Record<string, number | string>[]> {
  const pki = await createTestPki()
  const id = (name: string) => `spiffe://cluster.local/ns/default/sa/${name}`
  const tlsOf = async (name: string, checkPeer: TlsOptions['checkPeer']): Promise<TlsOptions> => {
    const { privateKey, chain } = await pki.issue(id(name))
    return { credentials: { privateKey, certificateChain: chain, roots: pki.roots }, checkPeer }
  }
  const serverTls = await tlsOf('server', expectTrustDomain('cluster.local'))
  const clientTls = await tlsOf('client', expectOneOf([id('server')]))
  const failures: unknown[] = []
  const server = net.createServer({ pauseOnConnect: true, allowHalfOpen: true, noDelay: true }, (socket) => {
    serveTunnels(socket, { tls: serverTls, http2 }, (request) => {
      const { stream } = request.accept()
      stream.pipe(stream)
    }).catch((error: unknown) => failures.push(error))
  })
  server.listen(0, '0.0.0.0')
  await once(server, 'listening')
  const { port } = server.address() as net.AddressInfo

  const exchange = async (from: string, to: string): Promise<void> => {
    const socket = net.connect({ host: to, port, localAddress: from, noDelay: true })
    await once(socket, 'connect')
    const connection = await openTunnelConnection(socket, { tls: clientTls, http2 })
    const { stream } = await connection.connect({ authority: `${to}:80`, headers: {} })
    stream.write(Buffer.of(1))
    await once(stream, 'data')
    stream.end()
    await once(stream, 'close')
    connection.closeGracefully()
    await connection.closed
  }
  const pairs = addresses.flatMap((from, index) => addresses.slice(index + 1).map((to) => ({ from, to })))
  for (const { from, to } of pairs.slice(0, 100)) await exchange(from, to)
  const cpu = process.cpuUsage()
  const start = performance.now()
  for (const { from, to } of pairs) await exchange(from, to)
  const seconds = (performance.now() - start) / 1000
  const { user, system } = process.cpuUsage(cpu)
  server.close()
  if (failures.length > 0) throw new AggregateError(failures, 'handshakes failed')
  return [
    {
      benchmark: 'connections',
      connections: pairs.length,
      'connections/s': Math.round(pairs.length / seconds),
      'CPU µs both ends': Math.round((user + system) / pairs.length),
    },
  ]
}

if (import.meta.main) process.stdout.write(`${JSON.stringify(await run(), undefined, 2)}\n`)
