// Whatever a peer sends as frames: the session answers with a protocol error or goes on, and never breaks by a fault of its own.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import net from 'node:net'
import { after, before, test } from 'node:test'
import fc from 'fast-check'
import { defaultHttp2Options } from '../types.ts'
import { flag, frameType, Http2ConnectionError, preface, setting } from './constants.ts'
import { encodeHeaders } from './hpack.ts'
import { createSession, type Session } from './session.ts'
import { encodeSettings } from './settings.ts'
import { connect, frame, word } from './testing.ts'

const answer = encodeHeaders([[':status', '200']])
const settings = encodeSettings([
  [setting.initialWindowSize, 70_000],
  [setting.maxFrameSize, 20_000],
])
/** A conversation as it should be, for each of the two roles to receive. */
const proper = {
  server: [
    frame(frameType.settings, 0, 0, settings.subarray(-12)),
    frame(frameType.headers, flag.endHeaders, 1, connect),
    frame(frameType.data, 0, 1, Buffer.from('hello')),
    frame(frameType.headers, 0, 3, connect.subarray(0, 4)),
    frame(frameType.continuation, flag.endHeaders, 3, connect.subarray(4)),
    frame(frameType.data, flag.padded, 3, Buffer.concat([Uint8Array.of(2), Buffer.from('hi'), Buffer.alloc(2)])),
    frame(frameType.data, flag.endStream, 3, Buffer.alloc(0)),
    frame(frameType.rstStream, 0, 1, word(8)),
  ],
  client: [
    frame(frameType.settings, 0, 0, settings.subarray(-12)),
    frame(frameType.headers, flag.endHeaders, 1, answer),
    frame(frameType.data, 0, 1, Buffer.from('hello')),
    frame(frameType.headers, flag.endHeaders | flag.endStream, 3, answer),
    frame(frameType.rstStream, 0, 5, word(7)),
  ],
} as const
const ofBoth = [
  frame(frameType.settings, flag.ack, 0, Buffer.alloc(0)),
  frame(frameType.windowUpdate, 0, 0, word(1000)),
  frame(frameType.windowUpdate, 0, 1, word(0x7fff_ffff)),
  frame(frameType.ping, 0, 0, Buffer.alloc(8)),
  frame(frameType.ping, flag.ack, 0, Buffer.alloc(8)),
  frame(frameType.priority, 0, 1, Buffer.alloc(5)),
  frame(frameType.pushPromise, flag.endHeaders, 1, Buffer.concat([word(2), connect])),
  frame(frameType.goaway, 0, 0, Buffer.concat([word(1), word(0)])),
  frame(0x5a, 0xff, 9, Buffer.from('unknown')),
]

/** Frames in their order or any other, some of them with bytes changed, and random ones between. */
function conversation(role: 'server' | 'client'): fc.Arbitrary<Buffer> {
  const change = fc.tuple(fc.nat(999), fc.nat(255))
  const changed = fc.tuple(fc.constantFrom(...proper[role], ...ofBoth), fc.array(change, { maxLength: 2 }))
  const mutated = changed.map(([bytes, changes]) => {
    const copy = Buffer.from(bytes)
    for (const [at, value] of changes) copy[at % copy.length] = value
    return copy
  })
  const any = fc
    .tuple(fc.nat(12), fc.nat(255), fc.nat(9), fc.uint8Array({ maxLength: 60 }))
    .map((parts) => frame(...parts))
  const frames = fc.array(fc.oneof(mutated, mutated, any), { maxLength: 12 })
  const kept = fc.nat(proper[role].length)
  return fc.tuple(kept, frames, fc.uint8Array({ maxLength: 20 })).map(([count, more, rest]) => {
    const opening = role === 'server' ? [preface] : []
    return Buffer.concat([...opening, ...proper[role].slice(0, count), ...more, rest])
  })
}

let listener: net.Server
before(async () => {
  listener = net.createServer({ allowHalfOpen: false, pauseOnConnect: true }).listen(0, '127.0.0.1')
  await once(listener, 'listening')
})
after(() => void listener.close())

async function pair(): Promise<{ readonly ours: net.Socket; readonly theirs: net.Socket }> {
  const accepted = once(listener, 'connection')
  const theirs = net.connect((listener.address() as net.AddressInfo).port, '127.0.0.1')
  const [ours] = (await accepted) as [net.Socket]
  theirs.on('error', () => undefined)
  theirs.resume()
  return { ours, theirs }
}

const ignore = () => undefined
const quietEvents = { headers: ignore, part: ignore, end: ignore, ready: ignore, closed: ignore }

function startSession(socket: net.Socket, role: 'server' | 'client'): Session {
  const session = createSession(socket, {
    role,
    http2: defaultHttp2Options,
    maxHeaderListBytes: 16_384,
    maxConcurrentStreams: 4,
    onChange: ignore,
    onPingTimeout: ignore,
    onStream(stream) {
      stream.headers([[':status', '200']], false)
      stream.send(Buffer.from('answer'))
      return { ...quietEvents, part: (bytes) => stream.consumed(bytes.length), end: () => stream.end(ignore) }
    },
  })
  if (role === 'server') return session
  for (let count = 0; count < 3; count += 1) {
    const stream = session.openStream([[':method', 'CONNECT']], {
      ...quietEvents,
      part: (bytes) => stream.consumed(bytes.length),
    })
    stream.send(Buffer.from('request'))
  }
  return session
}

for (const role of ['server', 'client'] as const) {
  test(`a ${role} outlives any frames`, { timeout: 60_000 }, async () => {
    let broken = 0
    await fc.assert(
      fc.asyncProperty(conversation(role), async (bytes) => {
        const { ours, theirs } = await pair()
        const session = startSession(ours, role)
        theirs.end(bytes)
        await session.closed
        theirs.destroy()
        const { failure } = session
        if (failure instanceof Http2ConnectionError) broken += 1
        else if (failure !== undefined)
          assert.match((failure as NodeJS.ErrnoException).code ?? String(failure.stack), /^(ECONNRESET|EPIPE)$/)
        assert.equal(session.activeStreams, 0)
      }),
      { numRuns: 600, interruptAfterTimeLimit: 15_000 },
    )
    assert.ok(broken > 20, `${broken} broke the protocol`)
  })
}
