import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { address, openRaw, startServer } from './test-streams.ts'

describe('raw requests', { timeout: 20_000 }, () => {
  test('stale nonces and unknown types are not answered', async () => {
    await using server = await startServer()
    server.addresses.change({ set: [{ name: 'w', text: '1' }] })
    const stream = openRaw(server.port)
    stream.send({ typeUrl: 'type.googleapis.com/unknown.Type' })
    stream.send({ typeUrl: address })
    const first = await stream.next()
    server.addresses.change({ set: [{ name: 'w', text: '22' }] })
    const second = await stream.next()
    assert.notEqual(first.nonce, second.nonce)
    assert.notEqual(first.systemVersionInfo, second.systemVersionInfo)
    stream.send({ typeUrl: address, responseNonce: first.nonce })
    stream.send({ typeUrl: address, responseNonce: second.nonce })
    // A spontaneous request of this type is answered; nothing may come before.
    stream.send({ typeUrl: address })
    const third = await stream.next()
    assert.equal(third.resources.length, 1)
    assert.equal(server.xds.connections()[0]?.watches.get(address)?.nonceAcked, second.nonce)
    stream.close()
  })
})
