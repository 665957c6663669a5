// Connections that applications open through the pod's SOCKS5 entry.
import type { Socket } from 'node:net'
import { encodeQuestion, firstAddress, handshake } from '../socks5/index.ts'
import { addressesOf } from './client.ts'
import { carryOutbound } from './outbound.ts'
import type { PodContext } from './pod-context.ts'
import { onStop } from './stop-listeners.ts'

/** Serves a client of the entry. Never rejects; the socket is closed in the end. */
export async function serveSocks5(context: PodContext, socket: Socket): Promise<void> {
  const { services, stopping } = context
  const addresses = addressesOf(socket)
  if (addresses === undefined) return
  const { from, to: entry } = addresses
  const stop = () => socket.destroy()
  const endStop = onStop(stopping, stop)
  const outcome = await handshake(socket, { resolve: (hostname) => resolveName(context, from, hostname) })
  endStop()
  if (outcome.kind === 'failed') {
    services.reports.deny({ reporter: 'source', src: from, dst: entry }, { error: outcome.error, flag: 'CONNECT' })
    return
  }
  await carryOutbound(context, socket, { from, to: outcome.address })
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
