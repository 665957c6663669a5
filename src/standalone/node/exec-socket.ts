// The exec protocol over WebSocket (`v4.channel.k8s.io`, `v5.channel.k8s.io`): the first byte of a message names its stream.
import type { ChildProcess } from 'node:child_process'
import type { WebSocket } from 'ws'
import { endGroup } from './exec.ts'

export const execProtocols = ['v5.channel.k8s.io', 'v4.channel.k8s.io'] as const

const channels = { stdin: 0, stdout: 1, stderr: 2, error: 3, close: 255 } as const
const pauseAboveBytes = 1024 * 1024

/** Joins the command's streams with the socket until one of them ends. */
export function joinExec(socket: WebSocket, child: ChildProcess): void {
  const send = (channel: number, data: Uint8Array) => socket.send(Buffer.concat([Buffer.from([channel]), data]))
  for (const [stream, channel] of [
    [child.stdout, channels.stdout],
    [child.stderr, channels.stderr],
  ] as const) {
    stream?.on('data', (chunk: Buffer) => {
      send(channel, chunk)
      if (socket.bufferedAmount < pauseAboveBytes) return
      stream.pause()
      const timer = setInterval(() => {
        if (socket.bufferedAmount >= pauseAboveBytes && socket.readyState === socket.OPEN) return
        clearInterval(timer)
        stream.resume()
      }, 10)
    })
  }
  child.stdin?.on('error', () => undefined) // the command closed its input
  socket.on('message', (message: Buffer) => {
    const [channel] = message
    if (channel === channels.stdin) child.stdin?.write(message.subarray(1))
    else if (channel === channels.close && message[1] === channels.stdin) child.stdin?.end()
  })
  socket.on('close', () => endGroup(child))
  socket.on('error', () => endGroup(child))
  child.once('close', (code, signal) => {
    send(channels.error, Buffer.from(JSON.stringify(exitStatus(code ?? (signal === null ? 1 : 137)))))
    socket.close(1000)
  })
}

/** The Status object that tells how a command ended. */
export function exitStatus(code: number): object {
  if (code === 0) return { metadata: {}, status: 'Success' }
  return {
    metadata: {},
    status: 'Failure',
    message: `command terminated with non-zero exit code: exit status ${code}`,
    reason: 'NonZeroExitCode',
    details: { causes: [{ reason: 'ExitCode', message: String(code) }] },
  }
}
