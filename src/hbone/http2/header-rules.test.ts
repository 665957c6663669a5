import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isRequest, isWellFormed } from './header-rules.ts'
import type { HeaderField } from './hpack.ts'

const connect: readonly HeaderField[] = [
  [':method', 'CONNECT'],
  [':authority', '10.0.0.1:80'],
]

test('fields of a request may be many, and the same again', () => {
  assert.ok(
    isWellFormed([...connect, ['baggage', 'a=b'], ['baggage', 'c=d'], ['te', 'trailers'], ['x-forwarded-network', '']]),
  )
})

test('names, values and their order are as the protocol has them', () => {
  const broken: readonly HeaderField[] = [
    ['Baggage', 'a=b'],
    ['', 'a'],
    ['a b', 'c'],
    ['a:', 'c'],
    ['baggage', 'a\r\nb: c'],
    ['baggage', 'a\0'],
  ]
  for (const field of broken) assert.equal(isWellFormed([...connect, field]), false, String(field))
  assert.equal(isWellFormed([['baggage', 'a=b'], ...connect]), false)
})

test('nothing is said about the connection', () => {
  const broken: readonly HeaderField[] = [
    ['connection', 'close'],
    ['proxy-connection', 'keep-alive'],
    ['keep-alive', 'timeout=5'],
    ['transfer-encoding', 'chunked'],
    ['upgrade', 'h2c'],
    ['te', 'gzip'],
  ]
  for (const field of broken) assert.equal(isWellFormed([...connect, field]), false, String(field))
})

test('a CONNECT has a method and an authority, each once, and nothing else of the kind', () => {
  assert.ok(isRequest(connect))
  const more: readonly HeaderField[] = [
    [':authority', '10.0.0.2:80'],
    [':path', '/'],
    [':scheme', 'https'],
    [':protocol', 'websocket'],
    [':status', '200'],
  ]
  for (const field of more) assert.equal(isRequest([...connect, field]), false, String(field))
  assert.equal(isRequest([[':method', 'CONNECT']]), false)
  assert.equal(isRequest([[':authority', 'a:1']]), false)
})
