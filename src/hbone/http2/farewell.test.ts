// How a session ends that is not ended by its peer: what the peer is told before the socket closes, read as frames.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import net from 'node:net'
import { after, before, type TestContext, test } from 'node:test'
import { flags, frameTypes, type RawPeer, rawPeer } from '../../../test/support/raw-http2.ts'
import { defaultHttp2Options, type Http2Options } from '../types.ts'
import { errorCode, preface } from './constants.ts'
import { createSession, type Session } from './session.ts'
import { noEvents, type SessionStream } from './stream.ts'
import { connect, frame } from './testing.ts'

let listener: net.Server
before(async () => {
  listener = net.createServer({ allowHalfOpen: false, pauseOnConnect: true }).listen(0, '127.0.0.1')
  await once(listener, 'listening')
})
after(() => void listener.close())

interface Ended {
  readonly session: Session
  readonly peer: RawPeer
  readonly theirs: net.Socket
  /** Of the server: the streams that the peer has opened. */
  readonly streams: SessionStream[]
}

async function open(role: 'server' | 'client', t: TestContext, http2: Partial<Http2Options> = {}): Promise<Ended> {
  const accepted = once(listener, 'connection')
  const theirs = net.connect((listener.address() as net.AddressInfo).port, '127.0.0.1')
  const [ours] = (await accepted) as [net.Socket]
  t.after(() => theirs.destroy())
  const streams: SessionStream[] = []
  const settled = Promise.withResolvers<void>()
  const session = createSession(ours, {
    role,
    http2: { ...defaultHttp2Options, ...http2 },
    maxHeaderListBytes: 16 * 1024,
    onChange: () => undefined,
    onPingTimeout: () => undefined,
    onSettings: settled.resolve,
    onStream(port) {
      streams.push(port)
      port.headers([[':status', '200']], false)
      return noEvents
    },
  })
  t.after(() => session.destroy())
  const peer = rawPeer(theirs, { expectPreface: role === 'client' })
  if (role === 'server') peer.send(preface)
  peer.send(frame(frameTypes.settings, 0, 0))
  await settled.promise
  return { session, peer, theirs, streams }
}

async function openStreams({ peer }: Ended, ids: readonly number[]): Promise<void> {
  for (const id of ids) peer.send(frame(frameTypes.headers, flags.endHeaders, id, connect))
  for (const id of ids) await peer.next(({ type, stream }) => type === frameTypes.headers && stream === id, 'an answer')
}

const reset = async ({ peer }: Ended, id: number) =>
  (await peer.next(({ type, stream }) => type === frameTypes.resetStream && stream === id, `the reset of ${id}`))
    .payload

const goAway = async ({ peer }: Ended) => {
  const { payload } = await peer.next(({ type }) => type === frameTypes.goAway, 'GOAWAY')
  return { last: payload.readUInt32BE(0), code: payload.readUInt32BE(4) }
}

const ends = async ({ theirs }: Ended) => {
  if (!theirs.closed) await once(theirs, 'close')
}

test('a server that is cut resets its streams and says goodbye, then closes', async (t) => {
  const one = await open('server', t)
  await openStreams(one, [1, 3])
  one.session.cut()
  assert.equal(one.session.activeStreams, 0)
  assert.equal((await reset(one, 1)).readUInt32BE(0), errorCode.cancel)
  assert.equal((await reset(one, 3)).readUInt32BE(0), errorCode.cancel)
  assert.deepEqual(await goAway(one), { last: 3, code: errorCode.noError })
  await ends(one)
  await one.session.closed
  assert.equal(one.session.failure, undefined)
})

test('a client that is cut says so too', async (t) => {
  const one = await open('client', t)
  one.session.openStream([[':method', 'CONNECT']], noEvents)
  one.session.cut()
  assert.equal(one.session.open, false)
  assert.equal((await reset(one, 1)).readUInt32BE(0), errorCode.cancel)
  assert.deepEqual(await goAway(one), { last: 0, code: errorCode.noError })
  await ends(one)
})

test('what was sent before arrives before the goodbye', async (t) => {
  const one = await open('server', t)
  await openStreams(one, [1])
  one.streams[0]?.send(Buffer.alloc(60_000, 'x'))
  one.session.cut()
  await reset(one, 1)
  const data = one.peer.pending.filter(({ type }) => type === frameTypes.data)
  assert.equal(
    data.reduce((sum, { payload }) => sum + payload.length, 0),
    60_000,
  )
  await goAway(one)
})

test('a peer in the middle of sending hears of it, and what it sends is not looked at', async (t) => {
  const one = await open('server', t)
  await openStreams(one, [1])
  one.theirs.pause()
  one.session.cut()
  // No frames at all: who looked at them would tell an error.
  await new Promise((resolve) => one.theirs.write(Buffer.alloc(1024 * 1024, 0xff), resolve))
  one.theirs.resume()
  assert.deepEqual(await goAway(one), { last: 1, code: errorCode.noError })
  await one.session.closed
  assert.equal(one.session.failure, undefined)
})

test('a peer that reads nothing holds nothing up: the socket is closed after a second', async (t) => {
  const one = await open('server', t)
  await openStreams(one, [1])
  one.theirs.pause()
  // Far more than the kernel takes, as the windows allow.
  one.peer.send(frame(frameTypes.windowUpdate, 0, 0, Buffer.from([0x7f, 0, 0, 0])))
  one.peer.send(frame(frameTypes.windowUpdate, 0, 1, Buffer.from([0x7f, 0, 0, 0])))
  one.peer.send(frame(frameTypes.ping, 0, 0, Buffer.alloc(8)))
  const [stream] = one.streams
  assert.ok(stream !== undefined)
  for (let round = 0; round < 64; round += 1) {
    stream.send(Buffer.alloc(512 * 1024))
    await new Promise(setImmediate)
  }
  const startedAt = performance.now()
  one.session.cut()
  await one.session.closed
  const took = performance.now() - startedAt
  assert.ok(took > 900 && took < 10_000, `${took}`)
})

test('a ping that comes when a session has said its last breaks nothing', async (t) => {
  const one = await open('server', t)
  one.theirs.allowHalfOpen = true
  const ended = once(one.theirs, 'end')
  one.session.leave()
  const ping = await one.peer.next(({ type, flags: has }) => type === frameTypes.ping && has === 0, 'a ping')
  one.peer.send(frame(frameTypes.ping, flags.ack, 0, ping.payload))
  await ended
  one.theirs.end(frame(frameTypes.ping, 0, 0, Buffer.alloc(8)))
  await one.session.closed
  assert.equal(one.session.failure, undefined)
})

test('a session that ends already is cut without another word', async (t) => {
  const one = await open('client', t)
  one.theirs.allowHalfOpen = true
  const ended = once(one.theirs, 'end')
  one.session.leave()
  one.session.cut()
  await goAway(one)
  await ended
  assert.deepEqual(
    one.peer.pending.filter(({ type }) => type === frameTypes.goAway),
    [],
  )
  await one.session.closed
  assert.equal(one.session.failure, undefined)
})

test('a peer that answers no ping is told goodbye', async (t) => {
  const one = await open('server', t, { pingIntervalMs: 20, pingTimeoutMs: 40 })
  await one.peer.next(({ type, flags: has }) => type === frameTypes.ping && has === 0, 'a ping')
  assert.deepEqual(await goAway(one), { last: 0, code: errorCode.noError })
  await ends(one)
  assert.match(one.session.failure?.message ?? '', /no answer to a ping/)
})
