// A client that connected to one of the pod's listeners: who it is, where it wanted to go, and when it has given up.
import type { Socket } from 'node:net'
import type { RelayEnd } from '../../hbone/index.ts'
import type { SocketAddress } from '../model.ts'
import type { ConnectionFailure, Reporter } from '../telemetry/index.ts'
import { describeFailure } from './errors.ts'
import { tcpEnd } from './forward.ts'
import type { PodContext } from './pod-context.ts'
import { destinationOf, remoteAddressOf, watchPaused } from './sockets.ts'
import { onStop } from './stop-listeners.ts'

export interface ClientAddresses {
  readonly from: SocketAddress
  /** Before redirection, where there was any. */
  readonly to: SocketAddress
}

export interface Client extends ClientAddresses {
  /** Aborts when the client resets its connection before it was accepted, or the pod's proxy stops. */
  readonly gone: AbortSignal
  /** Its side of a relay, which from now on notices itself when the client leaves. */
  accept(): RelayEnd
  /** Refuses it before its destination was decided. */
  deny(failure: ConnectionFailure): void
  /** Closes its connection. What it has sent and nobody read is answered with a reset. */
  close(): void
}

/** Takes a socket over; undefined when its client is gone already. */
export function addressesOf(socket: Socket): ClientAddresses | undefined {
  socket.on('error', () => undefined)
  const from = remoteAddressOf(socket)
  const to = destinationOf(socket)
  if (from !== undefined && to !== undefined) return { from, to }
  socket.destroy()
  return undefined
}

/** Serves a client whose socket is paused and unread. Never rejects; what `serve` throws refuses the client. */
export async function serveClient(
  context: PodContext,
  socket: Socket,
  about: ClientAddresses & { readonly reporter: Reporter },
  serve: (client: Client) => Promise<void>,
): Promise<void> {
  const { services, stopping } = context
  const { reporter, from, to } = about
  services.metrics.socketsOpen.with({ reporter }).inc()
  const gone = new AbortController()
  const endWatch = watchPaused(socket, () => gone.abort(new Error('client gone')))
  const endStop = onStop(stopping, () => gone.abort(stopping.reason))
  const close = () => void socket.destroy()
  const deny = (failure: ConnectionFailure) => {
    services.reports.deny({ reporter, src: from, dst: to }, failure)
    close()
  }
  const accept = () => {
    endWatch()
    return tcpEnd(socket)
  }
  try {
    await serve({ from, to, gone: gone.signal, accept, deny, close })
  } catch (error) {
    deny(describeFailure(error))
  } finally {
    endWatch()
    endStop()
    services.metrics.socketsOpen.with({ reporter }).dec()
  }
}
