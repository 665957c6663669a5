import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { Http2ConnectionError } from './constants.ts'
import { createHpackDecoder, encodeHeaders, type HeaderField } from './hpack.ts'
import { decodeHuffman } from './huffman.ts'

const hex = (text: string) => Buffer.from(text.replaceAll(' ', ''), 'hex')

test('the examples of RFC 7541, C.4: Huffman code and a growing table', () => {
  const decoder = createHpackDecoder(16_384)
  const first: HeaderField[] = [
    [':method', 'GET'],
    [':scheme', 'http'],
    [':path', '/'],
    [':authority', 'www.example.com'],
  ]
  assert.deepEqual(decoder.decode(hex('8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff')).fields, first)
  assert.deepEqual(decoder.decode(hex('8286 84be 5886 a8eb 1064 9cbf')).fields, [
    ...first,
    ['cache-control', 'no-cache'],
  ])
  assert.deepEqual(decoder.decode(hex('8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf')).fields, [
    [':method', 'GET'],
    [':scheme', 'https'],
    [':path', '/index.html'],
    [':authority', 'www.example.com'],
    ['custom-key', 'custom-value'],
  ])
})

test('entries leave a table made smaller, and an index to them is an error', () => {
  const decoder = createHpackDecoder(16_384)
  decoder.decode(hex('400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572'))
  assert.deepEqual(decoder.decode(hex('be')).fields, [['custom-key', 'custom-header']])
  decoder.decode(hex('20'))
  assert.throws(() => decoder.decode(hex('be')), Http2ConnectionError)
})

test('malformed blocks are refused', () => {
  const cases = {
    'index 0': '80',
    'index beyond the tables': 'ff ff 0f',
    'integer without end': 'ff ff ff ff ff ff ff ff ff',
    'string beyond the block': '40 0a 61',
    'size update after a field': '82 20',
    'size update beyond the limit': '3f e2 1f',
    'Huffman padding of zeros': '40 81 00 00',
    'Huffman padding of a whole octet': '40 82 1f ff 00',
    'Huffman end of string': '40 84 ff ff ff ff 00',
  }
  for (const [name, block] of Object.entries(cases)) {
    assert.throws(() => createHpackDecoder(16_384).decode(hex(block)), Http2ConnectionError, name)
  }
})

test('a list beyond the limit is told, and the table still follows', () => {
  const decoder = createHpackDecoder(64)
  assert.equal(
    decoder.decode(hex('400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572 be')).tooLarge,
    true,
  )
  assert.equal(decoder.decode(hex('be')).fields.length, 1)
})

test('what is encoded is decoded', () => {
  const text = fc.string({ maxLength: 300 }).map((value) => value.replace(/[^\x20-\xff]/g, ''))
  const name = fc.constantFrom(':authority', ':method', ':status', 'baggage', 'forwarded', 'via')
  fc.assert(
    fc.property(fc.array(fc.tuple(name, fc.oneof(text, fc.constantFrom('GET', '200', '404')))), (fields) => {
      assert.deepEqual(createHpackDecoder(1e6).decode(encodeHeaders(fields)).fields, fields)
    }),
  )
})

test('no input does anything but decode or throw a connection error', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      for (const run of [() => createHpackDecoder(1000).decode(Buffer.from(bytes)), () => decodeHuffman(bytes)]) {
        try {
          run()
        } catch (error) {
          assert.ok(error instanceof Http2ConnectionError)
        }
      }
    }),
    { numRuns: 2000 },
  )
})
