import assert from 'node:assert/strict'
import { Duplex } from 'node:stream'
import { type TestContext, test } from 'node:test'
import { outletOf } from './outlet.ts'

const sendTimeoutMs = 10_000

/** A stream whose messages are under way until they are told to have left, on a connection that takes what it is told to. */
function stream(t: TestContext, timeoutMs = sendTimeoutMs) {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const told: string[] = []
  let leave = () => {}
  const call = new Duplex({
    read: () => {},
    write: (_message, _encoding, left) => {
      leave = left
    },
  })
  const connection = {
    peer: '192.0.2.1:1',
    tls: undefined,
    bytesTaken: 0,
    admit: () => {},
    destroy: (end: string) => {
      told.push(end)
      call.destroy()
    },
  }
  const outlet = outletOf(call, {
    transport: { connection, hold: () => {} },
    sendTimeoutMs: timeoutMs,
    refuse: (error) => told.push(`refused ${error}`),
    stuck: () => told.push('stuck is told'),
  })
  return { outlet, call, connection, told, leave: () => leave(), pass: (ms: number) => t.mock.timers.tick(ms) }
}

test('who takes nothing for the whole of the time is cut off, and what it was sent is lost', async (t) => {
  const { outlet, told, pass } = stream(t)
  const { promise: isLost, resolve } = Promise.withResolvers<boolean>()
  outlet.write(Buffer.alloc(1), resolve)
  pass(sendTimeoutMs - 1)
  assert.deepEqual(told, [])
  pass(1)
  assert.deepEqual(told, ['stuck is told', 'stuck'])
  assert.equal(await isLost, true)
})

test('who takes something each time may take as long as it likes for all', (t) => {
  const { outlet, connection, told, pass } = stream(t)
  outlet.write(Buffer.alloc(1), () => {})
  for (let time = 0; time < 100; time += 1) {
    pass(sendTimeoutMs - 1)
    connection.bytesTaken += 16_384
    pass(1)
  }
  assert.deepEqual(told, [])
  pass(sendTimeoutMs)
  assert.deepEqual(told, ['stuck is told', 'stuck'])
})

test('answers to pings are not progress', (t) => {
  const { outlet, connection, told, pass } = stream(t)
  outlet.write(Buffer.alloc(1), () => {})
  connection.bytesTaken += 10 * (17 + 22) // ten frames of PING in a record of TLS each
  pass(sendTimeoutMs)
  assert.deepEqual(told, ['stuck is told', 'stuck'])
})

test('no message under way, no haste', async (t) => {
  const { outlet, told, leave, pass } = stream(t)
  pass(10 * sendTimeoutMs)
  const { promise: isLost, resolve } = Promise.withResolvers<boolean>()
  outlet.write(Buffer.alloc(1), resolve)
  pass(sendTimeoutMs - 1)
  leave()
  assert.equal(await isLost, false)
  pass(10 * sendTimeoutMs)
  assert.deepEqual(told, [])
})

test('without a time nobody is cut off', (t) => {
  const { outlet, told, pass } = stream(t, 0)
  outlet.write(Buffer.alloc(1), () => {})
  pass(1_000 * sendTimeoutMs)
  assert.deepEqual(told, [])
})

test('who is expelled may leave by itself', (t) => {
  const { outlet, call, told, pass } = stream(t)
  outlet.expel('why')
  call.emit('close')
  pass(60_000)
  assert.deepEqual(told, ['refused why'])
})

test('who is expelled and stays is cut off', (t) => {
  const { outlet, told, pass } = stream(t)
  outlet.expel('why')
  outlet.expel('why')
  pass(60_000)
  assert.deepEqual(told, ['refused why', 'forced'])
})
