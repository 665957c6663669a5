import assert from 'node:assert/strict'
import { test } from 'node:test'
import { addressKey, ipText, masked, parseIp, parsePrefix } from './addresses.ts'

test('an address is 4 or 16 bytes; IPv4 inside IPv6 is IPv4', () => {
  assert.deepEqual(parseIp('10.1.0.5'), Uint8Array.of(10, 1, 0, 5))
  assert.deepEqual(parseIp('::ffff:10.1.0.5'), Uint8Array.of(10, 1, 0, 5))
  assert.equal(parseIp('fd00::5')?.length, 16)
  for (const text of ['', '10.1', '010.1.0.5', '10.1.0.256', '10.1.0.5/24', 'fe80::1%eth0', 'a.example.com', '1']) {
    assert.equal(parseIp(text), undefined, text)
  }
})

test('a prefix keeps its bits as written, and gives them cleared on request', () => {
  const prefix = parsePrefix('192.168.10.7/20')
  assert.deepEqual(prefix, { address: Uint8Array.of(192, 168, 10, 7), length: 20 })
  assert.deepEqual(masked({ address: Uint8Array.of(192, 168, 10, 7), length: 20 }), Uint8Array.of(192, 168, 0, 0))
  assert.deepEqual(parsePrefix('10.0.0.1'), { address: Uint8Array.of(10, 0, 0, 1), length: 32 })
  assert.equal(parsePrefix('::ffff:10.0.0.0/104')?.length, 8)
  for (const text of ['10.0.0.0/33', '10.0.0.0/', '10.0.0.0/-1', '10.0.0.0/8/8', '::/129', 'x/8']) {
    assert.equal(parsePrefix(text), undefined, text)
  }
})

test('address keys are canonical, with an empty network in front of the slash', () => {
  assert.equal(addressKey('', Uint8Array.of(10, 0, 0, 1)), '/10.0.0.1')
  assert.equal(addressKey('n1', parseIp('FD00:0:0:0:0:0:0:5') ?? new Uint8Array()), 'n1/fd00::5')
  assert.equal(addressKey('n1', Uint8Array.of(10, 0, 0, 0), 8), 'n1/10.0.0.0/8')
  assert.equal(ipText(parseIp('2001:db8:0:1:1:1:1:1') ?? new Uint8Array()), '2001:db8:0:1:1:1:1:1')
})
