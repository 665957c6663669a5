import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  canonicalIp,
  cidrContains,
  cidrFromBytes,
  formatAddress,
  ipBits,
  ipFromBytes,
  ipToBytes,
  parseCidr,
  parseSocketAddress,
} from './address.ts'

test('addresses have one text each; IPv4-mapped ones are IPv4', () => {
  assert.equal(canonicalIp('2001:DB8:0:0::1'), '2001:db8::1')
  assert.equal(canonicalIp('::ffff:10.0.0.1'), '10.0.0.1')
  assert.equal(canonicalIp('::FFFF:a00:1'), '10.0.0.1')
  for (const text of ['', '10.0.0', '10.0.0.256', '010.0.0.1', 'fe80::1%eth0', 'host']) {
    assert.equal(canonicalIp(text), undefined, text)
  }
})

test('any 4 or 16 bytes make an address that reads back to itself', () => {
  const bytes = fc.oneof(fc.uint8Array({ minLength: 4, maxLength: 4 }), fc.uint8Array({ minLength: 16, maxLength: 16 }))
  fc.assert(
    fc.property(bytes, (input) => {
      const ip = ipFromBytes(input)
      assert.ok(ip !== undefined)
      assert.equal(canonicalIp(ip), ip)
      assert.equal(ipFromBytes(ipToBytes(ip)), ip)
    }),
  )
})

test('a block contains its own addresses only, of its own family only', () => {
  const inside = (cidr: string, ip: string): boolean => {
    const parsed = parseCidr(cidr)
    assert.ok(parsed)
    return cidrContains(parsed, ipBits(ip))
  }
  assert.ok(inside('10.1.2.3/8', '10.255.0.1'))
  assert.ok(!inside('10.0.0.0/8', '11.0.0.0'))
  assert.ok(inside('0.0.0.0/0', '192.0.2.1'))
  assert.ok(!inside('0.0.0.0/0', 'fd00::1'))
  assert.ok(!inside('::/0', '10.0.0.1'))
  assert.ok(inside('::ffff:10.0.0.0/104', '10.0.0.1'))
  assert.ok(inside('fd00::1/128', 'fd00::1'))
  for (const text of ['10.0.0.0', '10.0.0.0/33', '10.0.0.0/-1', '10.0.0.0/8x', '/8', 'fd00::/129', '10.0.0.0/']) {
    assert.equal(parseCidr(text), undefined, text)
  }
})

test('the text of a block reads back to the same block, of IPv4-mapped addresses too', () => {
  const mapped = fc.uint8Array({ minLength: 4, maxLength: 4 }).map((ip) => Uint8Array.of(...mappedPrefix, ...ip))
  const any = fc.oneof(fc.uint8Array({ minLength: 4, maxLength: 4 }), fc.uint8Array({ minLength: 16, maxLength: 16 }))
  fc.assert(
    fc.property(fc.oneof(mapped, any), fc.integer({ min: 0, max: 128 }), (bytes, length) => {
      const block = cidrFromBytes(bytes, length)
      if (bytes.length * 8 < length) assert.equal(block, undefined)
      else assert.deepEqual(parseCidr(block?.text ?? ''), block)
    }),
  )
})

const mappedPrefix = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff]

test('socket addresses', () => {
  assert.deepEqual(parseSocketAddress('[fd00::1]:80'), { ip: 'fd00::1', port: 80 })
  assert.equal(formatAddress({ ip: 'fd00::1', port: 80 }), '[fd00::1]:80')
  for (const text of ['fd00::1:80', '[10.0.0.1]:80', '10.0.0.1', '10.0.0.1:65536', '10.0.0.1:', ':80']) {
    assert.equal(parseSocketAddress(text), undefined, text)
  }
})
