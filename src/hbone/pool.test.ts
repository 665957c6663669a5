import assert from 'node:assert/strict'
import { PassThrough } from 'node:stream'
import { mock, test } from 'node:test'
import { createTunnelPool, HboneError, type Tunnel, type TunnelConnection } from './index.ts'

interface FakeConnection extends TunnelConnection {
  readonly tunnels: Set<Tunnel>
  /** How often it was cut. */
  readonly cuts: number
  sayGoodbye(): void
  endOne(): void
  holdUp(): void
}

function fakeConnection(maxTunnels = 1000): FakeConnection {
  const listeners = new Set<() => void>()
  const tunnels = new Set<Tunnel>()
  let heldUp = false
  let cuts = 0
  const { promise: closed, resolve: close } = Promise.withResolvers<void>()
  let usable = true
  let active = 0
  const changed = () => {
    for (const listener of listeners) listener()
  }
  return {
    tunnels,
    maxTunnels,
    closed,
    peer: { spiffeIds: [], chain: [] },
    get activeTunnels() {
      return active
    },
    get usable() {
      return usable
    },
    get heldUp() {
      return heldUp
    },
    holdUp() {
      heldUp = true
    },
    async connect() {
      active += 1
      const tunnel: Tunnel = {
        peer: { spiffeIds: [], chain: [] },
        stream: new PassThrough(),
        headers: {},
        reset: () => undefined,
        broken: () => false,
      }
      tunnels.add(tunnel)
      return tunnel
    },
    onChange: (listener) => void listeners.add(listener),
    closeGracefully() {
      usable = false
      if (active === 0) close()
    },
    get cuts() {
      return cuts
    },
    cut() {
      cuts += 1
      usable = false
      close()
    },
    sayGoodbye() {
      usable = false
      changed()
    },
    endOne() {
      active -= 1
      changed()
    },
  }
}

function target(
  options: { maxTunnels?: number; fail?: () => Error | undefined; onOpen?: (connection: FakeConnection) => void } = {},
) {
  const opened: FakeConnection[] = []
  const signals: AbortSignal[] = []
  return {
    key: 'k',
    opened,
    signals,
    async open(signal: AbortSignal) {
      signals.push(signal)
      await new Promise((resolve) => setImmediate(resolve))
      const error = options.fail?.()
      if (error !== undefined) throw error
      const connection = fakeConnection(options.maxTunnels)
      opened.push(connection)
      options.onOpen?.(connection)
      return connection
    },
  }
}

const request = { authority: '10.0.0.1:80', headers: {} }
const pool = (maxTunnelsPerConnection: number, unusedTimeoutMs = 60_000) =>
  createTunnelPool({ maxTunnelsPerConnection, unusedTimeoutMs })

test('a hundred callers at once share one connection', async () => {
  const one = target()
  const tunnels = pool(100)
  await Promise.all(Array.from({ length: 100 }, () => tunnels.connect(one, request)))
  assert.equal(one.opened.length, 1)
  await tunnels.close()
})

test('callers beyond the limit get the next connection; a connection with room again is used again', async () => {
  const one = target()
  const tunnels = pool(3)
  await Promise.all(Array.from({ length: 6 }, () => tunnels.connect(one, request)))
  assert.deepEqual(
    one.opened.map(({ activeTunnels }) => activeTunnels),
    [3, 3],
  )
  one.opened[0]?.endOne()
  await tunnels.connect(one, request)
  assert.equal(one.opened.length, 2)
  await tunnels.close()
})

test("the peer's limit counts too", async () => {
  const one = target({ maxTunnels: 1 })
  const tunnels = pool(100)
  await Promise.all([tunnels.connect(one, request), tunnels.connect(one, request)])
  assert.equal(one.opened.length, 2)
  await tunnels.close()
})

test('a failed attempt fails all who waited for it at once; the next caller tries again', async () => {
  let failing = true
  const one = target({ fail: () => (failing ? new Error('unreachable') : undefined) })
  const tunnels = pool(1)
  const outcomes = await Promise.allSettled(Array.from({ length: 50 }, () => tunnels.connect(one, request)))
  assert.ok(outcomes.every(({ status }) => status === 'rejected'))
  assert.equal(one.signals.length, 1)
  failing = false
  await tunnels.connect(one, request)
  await tunnels.close()
})

test('an attempt nobody waits for is given up, and a later caller starts its own', async () => {
  const one = target()
  const tunnels = pool(1)
  const gone = new AbortController()
  const first = tunnels.connect(one, request, gone.signal)
  gone.abort()
  await assert.rejects(first, { code: 'ABORTED' })
  assert.equal(one.signals[0]?.aborted, true)
  await tunnels.connect(one, request)
  await tunnels.close()
})

test('a connection whose peer said goodbye gets no new tunnels', async () => {
  const one = target()
  const tunnels = pool(10)
  await tunnels.connect(one, request)
  one.opened[0]?.sayGoodbye()
  await tunnels.connect(one, request)
  assert.equal(one.opened.length, 2)
  assert.equal(tunnels.connections, 1)
  await tunnels.close()
})

for (const [what, options] of [
  ['takes no tunnels', { maxTunnels: 0 }],
  ['says goodbye at once', { onOpen: (connection: FakeConnection) => connection.sayGoodbye() }],
] as const) {
  test(`a peer that ${what} is tried a few times, and then all who wait are told`, { timeout: 10_000 }, async () => {
    const one = target(options)
    const tunnels = pool(10)
    const outcomes = await Promise.allSettled([tunnels.connect(one, request), tunnels.connect(one, request)])
    for (const outcome of outcomes) {
      assert.equal(outcome.status === 'rejected' && outcome.reason.message, 'h2 failed: the peer takes no tunnels')
    }
    assert.equal(one.opened.length, 4)
    assert.equal(tunnels.connections, 0)
    await assert.rejects(tunnels.connect(one, request))
    assert.equal(one.opened.length, 8)
    await tunnels.close()
  })
}

test('a peer that says goodbye at once is left for the one that listens after it', async () => {
  let goodbyes = 2
  const one = target({
    onOpen(connection) {
      goodbyes -= 1
      if (goodbyes >= 0) connection.sayGoodbye()
    },
  })
  const tunnels = pool(10)
  await tunnels.connect(one, request)
  assert.equal(one.opened.length, 3)
  await tunnels.close()
})

test('what tunnels hold up on one connection is left alone by others, which get a new one, up to four', async () => {
  const one = target()
  const tunnels = pool(10)
  for (const expected of [1, 2, 3, 4, 4]) {
    await tunnels.connect(one, request)
    assert.equal(one.opened.length, expected)
    one.opened.at(-1)?.holdUp()
  }
  await tunnels.close()
})

test('a request the peer did not look at is tried on another connection', async () => {
  const one = target()
  const tunnels = pool(10)
  await tunnels.connect(one, request)
  const [first] = one.opened
  assert.ok(first !== undefined)
  first.connect = async () => {
    first.sayGoodbye()
    throw new HboneError('RETRY', 'refused')
  }
  await tunnels.connect(one, request)
  assert.equal(one.opened.length, 2)
  await tunnels.close()
})

test('an unused connection is given up after its time, and a new caller opens another', async () => {
  mock.timers.enable({ apis: ['setTimeout'] })
  try {
    const one = target()
    const tunnels = pool(10, 1000)
    await tunnels.connect(one, request)
    mock.timers.tick(999)
    await tunnels.connect(one, request)
    mock.timers.tick(999)
    assert.equal(tunnels.connections, 1)
    mock.timers.tick(1)
    assert.equal(tunnels.connections, 0)
    await tunnels.connect(one, request)
    assert.equal(one.opened.length, 2)
    await tunnels.close()
  } finally {
    mock.timers.reset()
  }
})

test('closing rejects those who wait and closes every connection', async () => {
  const one = target()
  const tunnels = pool(1)
  await tunnels.connect(one, request)
  const waiting = tunnels.connect(one, request)
  const closing = tunnels.close()
  await assert.rejects(waiting, { code: 'DRAINING', message: 'pool draining' })
  await closing
  assert.equal(one.opened[0]?.cuts, 1)
  await assert.rejects(tunnels.connect(one, request), { code: 'DRAINING' })
})
