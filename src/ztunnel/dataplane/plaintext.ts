// Plain connections that arrive for the pod: authorized without an identity, then carried to the application.
import type { Socket } from 'node:net'
import { decidePlaintext } from '../decisions/index.ts'
import { authorizeConnection } from './authorization.ts'
import { describeFailure } from './errors.ts'
import { forward, tcpEnd } from './forward.ts'
import { connectOptions, illegalPorts, type PodContext } from './pod-context.ts'
import { connectTcp, destinationOf, remoteAddressOf, watchPaused } from './sockets.ts'
import { onStop } from './stop-listeners.ts'

/** Serves a captured inbound connection. Never rejects; the socket is closed in the end. */
export async function servePlaintext(
  context: PodContext,
  socket: Socket,
  { preserveSource }: { readonly preserveSource: boolean },
): Promise<void> {
  const { services, options, pod, stopping } = context
  socket.on('error', () => undefined)
  const from = remoteAddressOf(socket)
  const to = destinationOf(socket)
  if (from === undefined || to === undefined) {
    socket.destroy()
    return
  }
  services.metrics.socketsOpen.with({ reporter: 'destination' }).inc()
  const gone = new AbortController()
  const endWatch = watchPaused(socket, () => gone.abort(new Error('client gone')))
  const endStop = onStop(stopping, () => gone.abort(stopping.reason))
  try {
    const wait = { timeoutMs: options.localWorkloadTimeoutMs, signal: gone.signal }
    const local = await services.state.waitForLocalWorkload(pod, wait)
    const decision = decidePlaintext(services.state, { local, from, to }, { illegalPorts: illegalPorts(options) })
    if (decision.kind === 'reject') {
      services.reports.deny({ reporter: 'destination', src: from, dst: to }, { error: decision.error, flag: 'CONNECT' })
      socket.destroy()
      return
    }
    const { sourceWorkload, service, upstream } = decision
    const about = { source: from, destination: upstream }
    await forward(
      {
        facts: {
          reporter: 'destination',
          src: from,
          dst: to,
          mutualTls: false,
          destination: local,
          ...(sourceWorkload === undefined ? {} : { source: sourceWorkload }),
          ...(service === undefined ? {} : { service }),
        },
        live: {
          direction: 'inbound',
          from,
          originalDestination: undefined,
          actualDestination: upstream,
          protocol: 'TCP',
        },
        authorization: about,
        authorize: () => authorizeConnection(context, { ...about, destinationWorkload: local }),
        clientGone: gone.signal,
        async connectUpstream(signal) {
          const source = preserveSource && decision.preserveSource ? { sourceIp: from.ip } : {}
          const onSourceLost = (error: unknown) =>
            services.log.warn('cannot keep the source address', { error: describeFailure(error).error })
          return {
            end: tcpEnd(await connectTcp(upstream, { ...connectOptions(context), ...source, onSourceLost }, signal)),
          }
        },
        acceptClient() {
          endWatch()
          return tcpEnd(socket)
        },
        refuseClient: () => socket.destroy(),
      },
      { tracker: context.tracker, reports: services.reports },
    )
  } catch (error) {
    services.reports.deny({ reporter: 'destination', src: from, dst: to }, describeFailure(error))
    socket.destroy()
  } finally {
    endWatch()
    endStop()
    services.metrics.socketsOpen.with({ reporter: 'destination' }).dec()
  }
}
