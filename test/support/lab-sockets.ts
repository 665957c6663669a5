// What tests do with the sockets of a test mesh.
import { once } from 'node:events'
import type { Socket } from 'node:net'

/** For a socket whose end is seen otherwise. */
export function ignoreErrors(socket: Socket): void {
  socket.on('error', () => undefined)
}

export function answerBack(socket: Socket): void {
  ignoreErrors(socket)
  socket.pipe(socket)
}

/** Resolves with the next bytes that come after the text is sent. */
export async function say(socket: Socket, text: string): Promise<string> {
  socket.write(text)
  const data = once(socket, 'data')
  socket.resume()
  return String((await data)[0])
}
