import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLineRing, readLines, writeLines } from './line-ring.ts'

test('lines come out whole and in order, round the end of the ring many times', () => {
  const memory = createLineRing(256)
  const writer = writeLines(memory)
  const reader = readLines(memory)
  let written = ''
  let read = ''
  for (let index = 0; index < 5000; index += 1) {
    const line = `${index} ${'é€😀x'.repeat(index % 9)}\n`
    const before = writer.dropped
    writer.write(line, 1)
    if (writer.dropped === before) written += line
    if (index % 3 === 0) read += reader.read(100).toString()
  }
  for (let piece = reader.read(100); piece.length > 0; piece = reader.read(100)) read += piece.toString()
  assert.equal(read, written)
  assert.ok(writer.dropped > 0 && writer.dropped < 5000, `${writer.dropped} dropped`)
})

test('a line that is longer than a piece comes out whole, wherever in the ring it is', () => {
  for (let offset = 0; offset < 128; offset += 1) {
    const memory = createLineRing(128)
    new Int32Array(memory.counters).set([offset, offset])
    const writer = writeLines(memory)
    const reader = readLines(memory)
    const long = `${'é€😀'.repeat(8)}\n`
    for (const line of ['a\n', long, 'b\n', 'c\n']) writer.write(line, 1)
    const pieces = Array.from({ length: 4 }, () => reader.read(16).toString())
    assert.deepEqual(pieces, ['a\n', long, 'b\nc\n', ''])
  }
})

test('what does not fit is dropped whole and counted on both sides', () => {
  const memory = createLineRing(64)
  const writer = writeLines(memory)
  const reader = readLines(memory)
  writer.write(`${'a'.repeat(62)}\n`, 1)
  writer.write('bc\n', 1)
  writer.write('d\ne\n', 2)
  assert.deepEqual([writer.dropped, reader.dropped], [3, 3])
  assert.equal(reader.read(1000).toString(), `${'a'.repeat(62)}\n`)
  writer.write('f\n', 1)
  assert.equal(reader.read(1000).toString(), 'f\n')
})

test('the writer wakes a reader that sleeps, once', () => {
  const memory = createLineRing(64)
  const writer = writeLines(memory)
  const reader = readLines(memory)
  assert.deepEqual([writer.write('a\n', 1), writer.write('b\n', 1)], [true, false])
  assert.equal(reader.sleep(), false)
  reader.read(64)
  assert.equal(reader.sleep(), true)
  assert.equal(writer.write('c\n', 1), true)
})

test('positions wrap where 32 bits end', () => {
  const memory = createLineRing(64)
  new Int32Array(memory.counters).set([-8, -8])
  const writer = writeLines(memory)
  const reader = readLines(memory)
  for (const line of ['0123456\n', 'abcdefg\n', 'hijklmn\n']) writer.write(line, 1)
  assert.equal(reader.read(64).toString(), '0123456\nabcdefg\nhijklmn\n')
})

test('a ring is a power of two', () => {
  assert.throws(() => createLineRing(1000), RangeError)
})
