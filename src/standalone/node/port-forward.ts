// Port forwarding over WebSocket (`v4.channel.k8s.io`): two channels a port, data and errors, each beginning with the port number.
import net from 'node:net'
import type { Duplex } from 'node:stream'
import type { WebSocket } from 'ws'

/** Opens a connection to a port inside a pod's network namespace. */
export type PodDialer = (port: number) => Duplex

/** Joins each asked port with its pair of channels. */
export function joinPorts(socket: WebSocket, ports: readonly number[], dial: PodDialer): void {
  const connections = ports.map((port, index) => {
    const [data, error] = [index * 2, index * 2 + 1]
    const send = (channel: number, bytes: Uint8Array) => socket.send(Buffer.concat([Buffer.from([channel]), bytes]))
    const head = Buffer.alloc(2)
    head.writeUInt16LE(port)
    send(data, head)
    send(error, head)
    const connection = dial(port)
    connection.on('data', (chunk: Buffer) => send(data, chunk))
    connection.on('error', (cause) => send(error, Buffer.from(`port ${port}: ${cause.message}`)))
    connection.on('close', () => socket.close(1000))
    return connection
  })
  socket.on('message', (message: Buffer) => {
    const channel = message[0] ?? 0
    if (channel % 2 === 0) connections[channel / 2]?.write(message.subarray(1))
  })
  const end = () => {
    for (const connection of connections) connection.destroy()
  }
  socket.on('close', end)
  socket.on('error', end)
}

/** Dials localhost of the node when the pod shares its network, the pod's own address otherwise. */
export function podDialer(address: string | undefined): PodDialer {
  return (port) => net.connect({ host: address ?? '127.0.0.1', port })
}
