// Connections that applications open through the pod's SOCKS5 entry.
import type { Socket } from 'node:net'
import { encodeQuestion, firstAddress, handshake } from '../socks5/index.ts'
import { carryOutbound } from './outbound.ts'
import type { PodContext } from './pod-context.ts'
import { destinationOf, remoteAddressOf } from './sockets.ts'
import { onStop } from './stop-listeners.ts'

/** Serves a client of the entry. Never rejects; the socket is closed in the end. */
export async function serveSocks5(context: PodContext, socket: Socket): Promise<void> {
  const { services, stopping } = context
  socket.on('error', () => undefined)
  const from = remoteAddressOf(socket)
  const entry = destinationOf(socket)
  if (from === undefined || entry === undefined) {
    socket.destroy()
    return
  }
  const stop = () => socket.destroy()
  const endStop = onStop(stopping, stop)
  const outcome = await handshake(socket, { resolve: (hostname) => resolveName(context, from, hostname) })
  endStop()
  if (outcome.kind === 'failed') {
    services.reports.deny({ reporter: 'source', src: from, dst: entry }, { error: outcome.error, flag: 'CONNECT' })
    return
  }
  await carryOutbound(context, socket, from, outcome.address)
}

async function resolveName(
  { services, pod, namespace }: PodContext,
  from: { readonly ip: string; readonly port: number },
  hostname: string,
): Promise<string | undefined> {
  const family = from.ip.includes(':') ? 6 : 4
  const client = { pod, from, protocol: 'tcp' as const, ...(namespace === undefined ? {} : { namespace }) }
  const answer = (await services.dns?.answer(encodeQuestion(hostname, family), client)) ?? null
  return firstAddress(answer, family)
}
