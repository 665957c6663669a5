// A way to a port of this machine, from it or from an address given, that can be cut and mended.
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'

export interface Link extends AsyncDisposable {
  readonly port: number
  /** Ends what goes through it; new connections are ended at once. */
  cut(): void
  mend(): void
}

export async function linkTo(port: number, address = '127.0.0.1'): Promise<Link> {
  const sockets = new Set<Socket>()
  let isCut = false
  const server = createServer((from) => {
    from.on('error', () => {})
    if (isCut) {
      from.destroy()
      return
    }
    const to = connect(port, '127.0.0.1')
    to.on('error', () => {})
    for (const [one, other] of [
      [from, to],
      [to, from],
    ] as const) {
      sockets.add(one)
      one.pipe(other)
      one.once('close', () => {
        sockets.delete(one)
        other.destroy()
      })
    }
  })
  server.listen(0, address)
  await once(server, 'listening')
  const at = server.address()
  const cut = (): void => {
    isCut = true
    for (const socket of sockets) socket.destroy()
  }
  return {
    port: typeof at === 'object' && at !== null ? at.port : 0,
    cut,
    mend: () => {
      isCut = false
    },
    async [Symbol.asyncDispose]() {
      cut()
      server.close()
      await once(server, 'close')
    },
  }
}
