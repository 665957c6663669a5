import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import { createPings } from './pings.ts'

test('a ping after each interval of an answer; a missing answer is told; nothing after the close', () => {
  mock.timers.enable({ apis: ['setTimeout'] })
  try {
    const events: string[] = []
    const pings = createPings(
      { pingIntervalMs: 10, pingTimeoutMs: 20 },
      { send: (payload) => events.push(`ping ${payload.readUInt32BE(4)}`), onDead: () => events.push('dead') },
    )
    pings.answered()
    mock.timers.tick(10)
    mock.timers.tick(19)
    pings.answered()
    mock.timers.tick(10)
    assert.deepEqual(events, ['ping 1', 'ping 2'])
    mock.timers.tick(20)
    assert.deepEqual(events, ['ping 1', 'ping 2', 'dead'])
    pings.answered()
    pings.close()
    mock.timers.tick(100)
    assert.equal(events.length, 3)
  } finally {
    mock.timers.reset()
  }
})
