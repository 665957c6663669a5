import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { EncodedResource } from '../types.ts'
import { deltaResource, removedResource } from './wire.ts'
import { deltaContent } from './wire-content.ts'

const text = fc.oneof(
  fc.string({ maxLength: 12 }),
  fc.string({ unit: 'grapheme', maxLength: 8 }),
  fc.constant('x'.repeat(200)),
)
const resource: fc.Arbitrary<EncodedResource> = fc
  .record({
    name: text,
    aliases: fc.array(text, { maxLength: 2 }),
    version: text,
    body: fc.oneof(fc.uint8Array({ maxLength: 40 }), fc.constant(new Uint8Array(20_000))),
  })
  .chain((one) =>
    fc.option(text, { nil: undefined }).map((bodyType) => (bodyType === undefined ? one : { ...one, bodyType })),
  )

test('a content written at once is the entries one after the other', () => {
  fc.assert(
    fc.property(
      text,
      fc.array(resource, { maxLength: 6 }),
      fc.array(text, { maxLength: 4 }),
      (typeUrl, resources, removed) => {
        const parts = [
          ...resources.flatMap((one) => deltaResource(typeUrl, one, false)),
          ...removed.map(removedResource),
        ]
        assert.deepEqual(deltaContent(typeUrl, resources, removed), Buffer.concat(parts))
      },
    ),
  )
})
