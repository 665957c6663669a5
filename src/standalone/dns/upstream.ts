// Passes queries for names outside the cluster on to other resolvers.
import dgram from 'node:dgram'
import net from 'node:net'

const timeoutMs = 2000

/** Asks the resolvers in turn; rejects when none answers. The query's id is kept. */
export async function forwardQuery(query: Buffer, resolvers: readonly string[], overTcp: boolean): Promise<Buffer> {
  let failure: unknown = new Error('no resolver is configured')
  for (const resolver of resolvers) {
    try {
      return await (overTcp ? askTcp(query, resolver) : askUdp(query, resolver))
    } catch (error) {
      failure = error
    }
  }
  throw failure
}

function askUdp(query: Buffer, resolver: string): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
  // Connected, so that only the resolver's own answers arrive and its port being closed is noticed.
  const socket = dgram.createSocket(net.isIPv6(resolver) ? 'udp6' : 'udp4')
  const timer = setTimeout(() => reject(new Error(`${resolver} did not answer`)), timeoutMs)
  socket.on('message', (answer) => {
    if (answer.length > 2 && answer.readUInt16BE(0) === query.readUInt16BE(0)) resolve(answer)
  })
  socket.on('error', reject)
  socket.connect(53, resolver, () => socket.send(query))
  return promise.finally(() => {
    clearTimeout(timer)
    socket.close()
  })
}

function askTcp(query: Buffer, resolver: string): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
  const socket = net.connect({ host: resolver, port: 53 })
  socket.setTimeout(timeoutMs, () => socket.destroy(new Error(`${resolver} did not answer`)))
  const frames = frameReader(resolve)
  socket.on('connect', () => socket.write(frame(query)))
  socket.on('data', frames)
  socket.on('error', reject)
  socket.on('close', () => reject(new Error(`${resolver} closed the connection`)))
  return promise.finally(() => socket.destroy())
}

/** A message as TCP carries it: its length in two bytes, then itself. */
export function frame(message: Buffer): Buffer {
  const length = Buffer.alloc(2)
  length.writeUInt16BE(message.length)
  return Buffer.concat([length, message])
}

/** Takes the bytes of a TCP connection as they come and calls back with each message. */
export function frameReader(onMessage: (message: Buffer) => void): (chunk: Buffer) => void {
  let held = Buffer.alloc(0)
  return (chunk) => {
    held = Buffer.concat([held, chunk])
    while (held.length >= 2) {
      const length = held.readUInt16BE(0)
      if (held.length < 2 + length) return
      onMessage(held.subarray(2, 2 + length))
      held = held.subarray(2 + length)
    }
  }
}
