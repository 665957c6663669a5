import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ipBytes } from './ip-bytes.ts'

const addresses: readonly (readonly [string, string | undefined])[] = [
  ['10.0.0.1', '0a000001'],
  ['::ffff:1.2.3.4', '01020304'],
  ['::ffff:102:304', '01020304'],
  ['::1', '00000000000000000000000000000001'],
  ['::', '00000000000000000000000000000000'],
  ['2001:db8::', '20010db8000000000000000000000000'],
  ['2001:db8:0:1:0:0:0:a', '20010db800000001000000000000000a'],
  ['1:2:3:4:5:6:7:8', '00010002000300040005000600070008'],
  ['64:ff9b::192.0.2.1', '0064ff9b0000000000000000c0000201'],
  ['fe80::1%eth0', undefined],
  ['10.0.0', undefined],
  ['010.0.0.1', undefined],
  ['1.2.3.4.5', undefined],
  ['web', undefined],
]
for (const [text, hex] of addresses) {
  test(`the bytes of ${text}`, () => assert.equal(ipBytes(text)?.toString('hex'), hex))
}
