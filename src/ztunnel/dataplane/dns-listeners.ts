// The pod's DNS sockets: UDP and TCP on loopback, answered by the DNS proxy.
import dgram from 'node:dgram'
import { existsSync, readFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import { createSocket, runInNamespace } from '../../linux/index.ts'
import type { SocketAddress } from '../model.ts'
import { canonicalIp, formatAddress } from '../state/address.ts'
import type { PodContext } from './pod-context.ts'
import { listenTcp, remoteAddressOf } from './sockets.ts'
import { onStop } from './stop-listeners.ts'
import type { DnsAnswerer } from './types.ts'

const idleMs = 5_000

/** Listens for the pod's DNS queries. Rejects, with nothing left behind, when an address cannot be bound. */
export async function listenDns(context: PodContext, dns: DnsAnswerer): Promise<{ close(): void }> {
  const open: { close(): void }[] = []
  const close = () => {
    for (const one of open.splice(0)) one.close()
  }
  try {
    for (const ip of listenAddresses(context)) {
      const address = { ip, port: context.options.ports.dns }
      open.push(await listenUdp(context, address, dns))
      const { namespace, options, services } = context
      open.push(
        await listenTcp(
          {
            namespace,
            address,
            mark: options.mark,
            transparent: 'never',
            reusePort: options.reusePort,
            keepalive: options.keepalive,
            onError: (error) => services.log.error('cannot accept DNS connections', { error: error.message }),
          },
          (socket) => serveDnsStream(context, socket, dns),
        ),
      )
    }
    return { close }
  } catch (error) {
    close()
    throw error
  }
}

function listenAddresses({ namespace, options }: PodContext): readonly string[] {
  if (options.dnsAddress !== undefined) return [options.dnsAddress]
  if (!options.ipv6) return ['127.0.0.1']
  // /proc/sys/net shows the namespace of the thread that looks.
  const disabled = runInNamespace(namespace, () => readIfPresent('/proc/sys/net/ipv6/conf/lo/disable_ipv6')?.trim())
  return disabled === undefined || disabled === '1' ? ['127.0.0.1'] : ['127.0.0.1', '::1']
}

function readIfPresent(path: string): string | undefined {
  return existsSync(path) ? readFileSync(path, 'utf8') : undefined
}

async function listenUdp(context: PodContext, address: SocketAddress, dns: DnsAnswerer): Promise<{ close(): void }> {
  const { options, services, pod, namespace } = context
  const type = address.ip.includes(':') ? 'udp6' : 'udp4'
  const socket = dgram.createSocket({ type, reuseAddr: true })
  try {
    const { fd } = createSocket(
      {
        family: type === 'udp6' ? 6 : 4,
        type: 'datagram',
        reusePort: options.reusePort,
        bind: address,
        ...(type === 'udp6' ? { v6Only: true } : {}),
        ...(options.mark === undefined ? {} : { mark: options.mark }),
      },
      namespace,
    )
    await new Promise<void>((resolve, reject) => {
      socket.once('error', reject)
      socket.bind({ fd }, () => {
        socket.off('error', reject)
        resolve()
      })
    })
  } catch (error) {
    socket.close()
    const message = error instanceof Error ? error.message : String(error)
    throw new Error(`failed to bind to address ${formatAddress(address)}: ${message}`, { cause: error })
  }
  let closed = false
  socket.on('error', (error) => services.log.error('DNS socket failed', { error: error.message }))
  socket.on('message', (query, peer) => {
    const from = { ip: canonicalIp(peer.address) ?? peer.address, port: peer.port }
    const client = { pod, from, protocol: 'udp' as const, ...(namespace === undefined ? {} : { namespace }) }
    dns.answer(query, client).then(
      (answer) => {
        if (answer !== null && !closed) socket.send(answer, peer.port, peer.address, () => undefined)
      },
      (error: unknown) => services.log.warn('DNS query not answered', { error: String(error) }),
    )
  })
  return {
    close() {
      closed = true
      socket.close()
    },
  }
}

/** Queries over TCP, each with two bytes of length, answered in order. A client that does not take its answers is asked no more. */
async function serveDnsStream(context: PodContext, socket: Socket, dns: DnsAnswerer): Promise<void> {
  const { pod, namespace, stopping } = context
  socket.on('error', () => undefined)
  const from = remoteAddressOf(socket)
  if (from === undefined) {
    socket.destroy()
    return
  }
  socket.setTimeout(idleMs, () => socket.destroy())
  const stop = () => socket.destroy()
  const endStop = onStop(stopping, stop)
  const client = { pod, from, protocol: 'tcp' as const, ...(namespace === undefined ? {} : { namespace }) }
  let pending = Buffer.alloc(0)
  try {
    for await (const chunk of socket) {
      pending = Buffer.concat([pending, chunk])
      while (pending.length >= 2 && pending.length >= 2 + pending.readUInt16BE(0)) {
        const length = pending.readUInt16BE(0)
        const query = pending.subarray(2, 2 + length)
        pending = pending.subarray(2 + length)
        const answer = await dns.answer(query, client)
        if (answer === null) continue
        const prefix = Buffer.alloc(2)
        prefix.writeUInt16BE(answer.length)
        if (!socket.write(Buffer.concat([prefix, answer]))) await writable(socket)
      }
    }
    socket.end()
  } catch (error) {
    context.services.log.debug('DNS connection ended', { error: String(error) })
    socket.destroy()
  } finally {
    endStop()
  }
}

/** Resolves when the client has taken what was written, or is gone. */
function writable(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      socket.off('drain', end)
      socket.off('close', end)
      resolve()
    }
    socket.on('drain', end)
    socket.on('close', end)
  })
}
