// Plain connections that arrive for the pod: authorized without an identity, then carried to the application.
import type { Socket } from 'node:net'
import { decidePlaintext } from '../decisions/index.ts'
import { authorizeConnection } from './authorization.ts'
import { addressesOf, type Client, serveClient } from './client.ts'
import { connectApplication } from './connect-application.ts'
import { forward } from './forward.ts'
import { illegalPorts, type PodContext } from './pod-context.ts'

/** Serves a captured inbound connection. Never rejects; the socket is closed in the end. */
export async function servePlaintext(
  context: PodContext,
  socket: Socket,
  { preserveSource }: { readonly preserveSource: boolean },
): Promise<void> {
  const addresses = addressesOf(socket)
  if (addresses === undefined) return
  const about = { ...addresses, reporter: 'destination' as const }
  await serveClient(context, socket, about, (client) => carry(context, client, preserveSource))
}

async function carry(context: PodContext, client: Client, preserveSource: boolean): Promise<void> {
  const { services, options, pod } = context
  const { from, to, gone } = client
  const wait = { timeoutMs: options.localWorkloadTimeoutMs, signal: gone }
  const local = await services.state.waitForLocalWorkload(pod, wait)
  const decision = decidePlaintext(services.state, { local, from, to }, { illegalPorts: illegalPorts(options) })
  if (decision.kind === 'reject') return client.deny({ error: decision.error, flag: 'CONNECT' })
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
      clientGone: gone,
      async connectUpstream(signal) {
        const keepSource = preserveSource && decision.preserveSource
        return { end: await connectApplication(context, { to: upstream, from, keepSource }, signal) }
      },
      acceptClient: client.accept,
      refuseClient: client.close,
    },
    { tracker: context.tracker, reports: services.reports },
  )
}
