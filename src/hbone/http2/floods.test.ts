// A client that makes the server work or keep something for each frame, without end.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import net from 'node:net'
import { type TestContext, test } from 'node:test'
import { defaultHttp2Options } from '../types.ts'
import { flag, frameType, preface } from './constants.ts'
import { encodeHeaders } from './hpack.ts'
import { createSession, type Session } from './session.ts'
import type { SessionStream } from './stream.ts'
import { connect, frame, word } from './testing.ts'

const ignore = () => undefined

interface Served {
  readonly session: Session
  readonly client: net.Socket
  /** Streams that were opened to whoever serves them. */
  readonly opened: () => number
}

/** The client has greeted, and reads nothing. */
async function serve(context: TestContext, onStream: (stream: SessionStream) => void): Promise<Served> {
  const listener = net.createServer({ allowHalfOpen: false, pauseOnConnect: true }).listen(0, '127.0.0.1')
  await once(listener, 'listening')
  const accepted = once(listener, 'connection')
  const client = net.connect((listener.address() as net.AddressInfo).port, '127.0.0.1')
  const [socket] = (await accepted) as [net.Socket]
  client.on('error', ignore)
  let opened = 0
  const session = createSession(socket, {
    role: 'server',
    http2: defaultHttp2Options,
    maxHeaderListBytes: 16_384,
    maxConcurrentStreams: 4,
    onChange: ignore,
    onPingTimeout: ignore,
    onStream(stream) {
      opened += 1
      onStream(stream)
      return { headers: ignore, part: ignore, end: ignore, ready: ignore, closed: ignore }
    },
  })
  context.after(() => {
    client.destroy()
    session.destroy()
    listener.close()
  })
  client.write(Buffer.concat([preface, frame(frameType.settings, 0, 0)]))
  return { session, client, opened: () => opened }
}

/** Sends what `bytes` gives until the connection is over; fails when it is not after so many times. */
async function flood({ session, client }: Served, bytes: (round: number) => Buffer, most: number): Promise<void> {
  let over = false
  void session.closed.then(() => {
    over = true
  })
  for (let round = 0; !over; round += 1) {
    assert.ok(round < most, 'the connection goes on')
    if (client.write(bytes(round))) await new Promise((resolve) => setImmediate(resolve))
    else await Promise.race([once(client, 'drain'), session.closed])
  }
}

const headers = (streamId: number): Buffer => frame(frameType.headers, flag.endHeaders, streamId, connect)
const many = (count: number, of: (index: number) => Buffer): Buffer =>
  Buffer.concat(Array.from({ length: count }, (_, index) => of(index)))

test('refusals that the client does not read are kept only so far', { timeout: 60_000 }, async (context) => {
  const served = await serve(context, (stream) => {
    stream.headers([[':status', '401']], true)
    stream.reset(0)
  })
  await flood(served, (round) => many(1000, (index) => headers((round * 1000 + index) * 2 + 1)), 2000)
  assert.equal(served.session.failure?.message, 'the peer does not read its answers')
})

test('a client that reads its refusals may ask on', { timeout: 60_000 }, async (context) => {
  const served = await serve(context, (stream) => {
    stream.headers([[':status', '401']], true)
    stream.reset(0)
  })
  served.client.resume()
  for (let round = 0; round < 50; round += 1) {
    served.client.write(many(1000, (index) => headers((round * 1000 + index) * 2 + 1)))
    while (served.opened() < (round + 1) * 1000) await new Promise((resolve) => setImmediate(resolve))
  }
  assert.equal(served.session.failure, undefined)
})

for (const [what, breach] of [
  ['a window of nothing', (id: number) => frame(frameType.windowUpdate, 0, id, word(0))],
  ['a window too large', (id: number) => frame(frameType.windowUpdate, 0, id, word(0x7fff_ffff))],
  ['headers without an end of the stream', headers],
] as const) {
  test(`streams that the client makes the server reset, by ${what}, are as few as those it resets itself`, {
    timeout: 60_000,
  }, async (context) => {
    const served = await serve(context, ignore)
    served.client.resume()
    await flood(
      served,
      (round) => many(100, (index) => Buffer.concat([headers(idOf(round, index)), breach(idOf(round, index))])),
      100,
    )
    assert.equal(served.session.failure?.message, 'too many streams given up before their answer')
    assert.ok(served.opened() < 1500, `${served.opened()}`)
  })
}

const idOf = (round: number, index: number): number => (round * 100 + index) * 2 + 1

test('requests that are none are answered only so often', { timeout: 60_000 }, async (context) => {
  const served = await serve(context, ignore)
  served.client.resume()
  const none = encodeHeaders([[':method', 'CONNECT']])
  await flood(
    served,
    (round) => many(100, (index) => frame(frameType.headers, flag.endHeaders, idOf(round, index), none)),
    100,
  )
  assert.equal(served.session.failure?.message, 'too many streams given up before their answer')
})
