// A client: asks TARGET once every INTERVAL_MS and says what came of it. It can also be told to ask for something else, which is how the
// check of the running sample looks at the mesh from inside a pod:
//   /fetch?url=…         asks once and tells the answer, or why there was none
//   /connect?to=host:port  opens a connection and keeps it open
//   /connections/ID      whether it still is
import { connect, type Socket } from 'node:net'
import { idOf, messageOf, type Reply, say, serve } from './server.ts'

interface Held {
  readonly socket: Socket
  state: 'opening' | 'open' | 'closed'
  received: string
  closedAt?: number
}

const held = new Map<string, Held>()

async function ask(url: string): Promise<Record<string, unknown>> {
  try {
    // A connection of its own each time: a policy is to be seen on new connections.
    const response = await fetch(url, { signal: AbortSignal.timeout(5_000), headers: { connection: 'close' } })
    const text = await response.text()
    return { status: response.status, body: text.startsWith('{') ? JSON.parse(text) : text }
  } catch (error) {
    return { error: messageOf(error) }
  }
}

/** Opens a connection and sends a request head without its end, so that the server waits and the connection stays. */
function hold(to: string): Promise<Reply> {
  const [host = '', port = ''] = to.split(':')
  const id = String(held.size + 1)
  return new Promise((resolve) => {
    const socket = connect(Number(port), host)
    const one: Held = { socket, state: 'opening', received: '' }
    held.set(id, one)
    const reply = (): void =>
      resolve({ body: { id, state: one.state, from: `${socket.localAddress}:${socket.localPort}` } })
    socket.setTimeout(5_000, () => {
      if (one.state === 'opening') socket.destroy()
    })
    // The proxy accepts at once: only an answer shows that the way to the server is open.
    socket.on('connect', () => socket.write('GET /health HTTP/1.1\r\nHost: held\r\n\r\nGET /health HTTP/1.1\r\n'))
    socket.on('data', (chunk) => {
      one.received += chunk.toString('latin1')
      if (one.state !== 'opening') return
      one.state = 'open'
      socket.setTimeout(0)
      reply()
    })
    socket.on('error', () => undefined)
    socket.on('close', () => {
      one.state = 'closed'
      one.closedAt = Date.now()
      reply()
    })
  })
}

const target = process.env.TARGET
if (target !== undefined && target !== '') {
  const counts = { answered: 0, failed: 0 }
  setInterval(
    async () => {
      const { status, error } = await ask(target)
      if (status === 200) counts.answered += 1
      else {
        counts.failed += 1
        say(`${target}: ${error ?? `HTTP ${status}`}`)
      }
      const all = counts.answered + counts.failed
      if (all % 30 === 1) say(`${target}: ${counts.answered} of ${all} requests answered`)
    },
    Number(process.env.INTERVAL_MS ?? 1_000),
  )
}

serve('traffic', async ({ url }) => {
  const of = url.searchParams
  if (url.pathname === '/fetch') return { body: await ask(of.get('url') ?? '') }
  if (url.pathname === '/connect') return hold(of.get('to') ?? '')
  const one = held.get(idOf(url, 'connections') ?? '')
  return one === undefined ? undefined : { body: { state: one.state, closedAt: one.closedAt } }
})
