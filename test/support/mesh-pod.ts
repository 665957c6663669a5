// A program for pods of tests: serves one port for each way of talking, and talks to such ports.
import { createHash } from 'node:crypto'
import dgram from 'node:dgram'
import { once } from 'node:events'
import net from 'node:net'
import type { Duplex } from 'node:stream'

/** The port of each way of talking. */
export const talk = {
  /** Sends back what comes, also after the peer's FIN. */
  echo: 9000,
  /** Speaks first: its pod and the peer's address. */
  banner: 9001,
  /** Reads to the end, then tells how much came and its SHA-256. */
  sink: 9002,
  /** Sends as many bytes as the first line says. */
  source: 9003,
  /** HTTP: its pod and the peer's address. */
  http: 9004,
  /** Datagrams come back. */
  udp: 9005,
} as const

const name = process.env.POD_NAME ?? process.env.HOSTNAME ?? 'pod'

function serve(): void {
  const listen = (port: number, onSocket: (socket: net.Socket) => void) => {
    const server = net.createServer({ allowHalfOpen: true }, (socket) => {
      socket.on('error', () => socket.destroy())
      onSocket(socket)
    })
    server.listen(port, '::')
    return server
  }
  const peer = (socket: net.Socket) => (socket.remoteAddress ?? '').replace('::ffff:', '')
  const servers = [
    listen(talk.echo, (socket) => socket.pipe(socket)),
    listen(talk.banner, (socket) => {
      socket.write(`${name} ${peer(socket)}\n`)
      socket.resume().on('end', () => socket.end())
    }),
    listen(talk.sink, (socket) => void sink(socket)),
    listen(talk.source, (socket) => void once(socket, 'data').then(([line]) => source(socket, Number(line)))),
    listen(talk.http, (socket) => {
      socket.on('data', () => {
        const body = `${name} ${peer(socket)}\n`
        socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${body}`)
      })
      socket.on('end', () => socket.end())
    }),
  ]
  const datagrams = dgram.createSocket('udp4')
  datagrams.on('message', (message, from) => datagrams.send(message, from.port, from.address))
  datagrams.bind(talk.udp)
  process.on('SIGTERM', () => {
    for (const server of servers) server.close()
    datagrams.close()
  })
}

async function sink(socket: net.Socket): Promise<void> {
  const hash = createHash('sha256')
  let count = 0
  for await (const chunk of socket.iterator({ destroyOnReturn: false })) {
    hash.update(chunk)
    count += chunk.length
  }
  socket.end(`${count} ${hash.digest('hex')}\n`)
}

/** Bytes that differ from place to place, the same every time. */
function block(index: number): Buffer {
  return Buffer.alloc(64 * 1024, createHash('sha256').update(String(index)).digest())
}

async function source(to: Duplex, count: number): Promise<string> {
  const hash = createHash('sha256')
  for (let sent = 0, index = 0; sent < count; index += 1) {
    const chunk = block(index).subarray(0, count - sent)
    sent += chunk.length
    hash.update(chunk)
    if (!to.write(chunk)) await once(to, 'drain')
  }
  to.end()
  return hash.digest('hex')
}

async function text(socket: net.Socket): Promise<string> {
  let all = ''
  for await (const chunk of socket) all += String(chunk)
  return all
}

function connect(host: string, port: number): net.Socket {
  return net.connect({ host, port, allowHalfOpen: true })
}

function say(line: string): void {
  process.stdout.write(`${new Date().toISOString()} ${line}\n`)
}

/** What a pod says to a peer; each prints a line. */
const calls: Readonly<Record<string, (host: string, ...words: string[]) => Promise<string>>> = {
  async echo(host, message = 'hello') {
    const socket = connect(host, talk.echo)
    socket.end(message)
    return text(socket)
  },
  async banner(host) {
    const socket = connect(host, talk.banner)
    const [line] = await once(socket, 'data')
    socket.destroy()
    return String(line)
  },
  /** Sends, ends its own direction, and reads the peer's answer to all of it. */
  async upload(host, bytes = '1000') {
    const socket = connect(host, talk.sink)
    const hash = await source(socket, Number(bytes))
    const answer = await text(socket)
    return answer === `${bytes} ${hash}\n` ? `same ${bytes}` : `sent ${bytes} ${hash}, peer got ${answer}`
  },
  async download(host, bytes = '1000', pauseMs = '0') {
    const socket = connect(host, talk.source)
    socket.write(`${bytes}\n`)
    const hash = createHash('sha256')
    let count = 0
    for await (const chunk of socket) {
      hash.update(chunk)
      count += chunk.length
      if (pauseMs !== '0') await new Promise((resolve) => setTimeout(resolve, Number(pauseMs)))
    }
    const expected = await source(new (await import('node:stream')).PassThrough().resume(), Number(bytes))
    return hash.digest('hex') === expected && count === Number(bytes) ? `same ${bytes}` : `differs after ${count}`
  },
  async udp(host, size = '100') {
    const socket = dgram.createSocket('udp4')
    const message = block(1).subarray(0, Number(size))
    socket.send(message, talk.udp, host)
    const timer = setTimeout(() => socket.close(new Error('no answer') as never), 5000)
    const [answer] = (await once(socket, 'message')) as [Buffer]
    clearTimeout(timer)
    socket.close()
    return answer.equals(message) ? `same ${size}` : 'differs'
  },
  /** Many connections at the same time, all open before the first speaks. */
  async many(host, count = '100') {
    const sockets = Array.from({ length: Number(count) }, () => connect(host, talk.echo))
    await Promise.all(sockets.map((socket) => once(socket, 'connect')))
    const answers = await Promise.all(
      sockets.map((socket, index) => {
        socket.end(`number ${index}`)
        return text(socket)
      }),
    )
    return `right ${answers.filter((answer, index) => answer === `number ${index}`).length}`
  },
  async refused(host, port = '9') {
    const socket = connect(host, Number(port))
    try {
      await once(socket, 'connect')
      const answer = await text(socket)
      return `connected, then ended after ${answer.length} bytes`
    } catch (error) {
      return String((error as NodeJS.ErrnoException).code)
    }
  },
  /** Opens one connection after another and prints each one that fails or takes longer than `gapMs`. */
  async pulse(host, gapMs = '1000') {
    process.on('SIGTERM', () => process.exit(0))
    for (let count = 0; ; count += 1) {
      const begin = Date.now()
      const socket = connect(host, talk.echo)
      socket.setTimeout(3000, () => socket.destroy(new Error('silent for 3 s')))
      socket.end('x')
      const answer = await text(socket).catch((error: NodeJS.ErrnoException) => error.code ?? error.message)
      const took = Date.now() - begin
      if (answer !== 'x') say(`failed: ${answer || 'ended without an answer'}`)
      else if (took > Number(gapMs)) say(`slow: ${took}`)
      else if (count % 20 === 0) say('well')
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  },
  /** Keeps one connection and asks on it over and over; prints each pause longer than `gapMs`, and its own end. */
  async keep(host, gapMs = '1000') {
    const socket = connect(host, talk.echo)
    let last = Date.now()
    let longest = 0
    process.on('SIGTERM', () => socket.destroy())
    socket.on('data', () => {
      longest = Math.max(longest, Date.now() - last)
      if (Date.now() - last > Number(gapMs)) say(`pause: ${Date.now() - last}`)
      last = Date.now()
      setTimeout(() => socket.write('x'), 20)
    })
    await once(socket, 'connect')
    say('open')
    socket.write('x')
    const why = await new Promise((resolve) => {
      socket.on('error', resolve)
      socket.on('close', () => resolve('closed'))
    })
    return `ended: ${why} after pauses of at most ${longest}`
  },
}

const [what = 'serve', host = '', ...words] = process.argv.slice(2)
if (import.meta.main) {
  if (what === 'serve') serve()
  else process.stdout.write(`${(await calls[what]?.(host, ...words))?.trimEnd()}\n`)
}
