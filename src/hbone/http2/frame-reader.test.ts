import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { Http2ConnectionError } from './constants.ts'
import { createFrameReader } from './frame-reader.ts'
import { frame } from './testing.ts'

function recorder() {
  const events: string[] = []
  let data = ''
  return {
    events,
    dataStart: (id: number, length: number) => void events.push(`start ${id} ${length}`),
    dataPart(_id: number, part: Buffer) {
      data += part.toString('hex')
    },
    dataEnd(id: number, padding: number, end: boolean) {
      events.push(`data ${id} ${data} ${padding} ${end}`)
      data = ''
    },
    frame: ({ type, flags, streamId, payload }: { type: number; flags: number; streamId: number; payload: Buffer }) =>
      void events.push(`frame ${type} ${flags} ${streamId} ${payload.toString('hex')}`),
  }
}

test('frames are the same however the bytes are cut', () => {
  const someFrame = fc
    .tuple(
      fc.constantFrom(0, 1, 4, 6, 9, 200),
      fc.integer({ min: 1, max: 1000 }),
      fc.uint8Array({ maxLength: 40 }),
      fc.boolean(),
    )
    .map(([type, id, payload, end]) => frame(type, end ? 1 : 0, id, payload))
  fc.assert(
    fc.property(fc.array(someFrame, { maxLength: 8 }), fc.array(fc.integer({ min: 1, max: 60 })), (frames, cuts) => {
      const bytes = Buffer.concat(frames)
      const [whole, cut] = [recorder(), recorder()]
      createFrameReader(whole, 16_384)(bytes)
      const read = createFrameReader(cut, 16_384)
      let at = 0
      for (const length of [...cuts, bytes.length]) {
        read(bytes.subarray(at, at + length))
        at += length
      }
      assert.deepEqual(cut.events, whole.events)
    }),
  )
})

test('padding is taken off, and counted', () => {
  const seen = recorder()
  createFrameReader(seen, 16_384)(frame(0, 0x8 | 0x1, 3, Buffer.from([2, 0xaa, 0xbb, 0, 0])))
  createFrameReader(seen, 16_384)(frame(0, 0x8, 3, Buffer.from([0])))
  assert.deepEqual(seen.events, ['start 3 5', 'data 3 aabb 3 true', 'start 3 1', 'data 3  1 false'])
})

test('frames that may not be are refused', () => {
  const cases = {
    'larger than allowed': frame(0, 0, 1, Buffer.alloc(16_385)),
    'DATA without a stream': frame(0, 0, 0, Buffer.of(1)),
    'more padding than frame': frame(0, 0x8, 1, Buffer.from([5, 1])),
    'padded without pad length': frame(0, 0x8, 1, Buffer.alloc(0)),
  }
  for (const [name, bytes] of Object.entries(cases)) {
    assert.throws(() => createFrameReader(recorder(), 16_384)(bytes), Http2ConnectionError, name)
  }
})
