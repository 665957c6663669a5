import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { fromBinary } from '@bufbuild/protobuf'
import fc from 'fast-check'
import { discovery } from '../../proto/index.ts'
import { deltaResource, deltaResponse, removedResource, sotwResource, sotwResponse } from './wire.ts'

const envelope = { typeUrl: 'type.googleapis.com/a.B', version: 'v/1', nonce: 'n', controlPlane: 'cp' }

const resource = fc.record({
  name: fc.string(),
  version: fc.string(),
  aliases: fc.array(fc.string({ minLength: 1 }), { maxLength: 3 }),
  body: fc.uint8Array({ maxLength: 400 }),
})

describe('responses put together from bytes', () => {
  test('decode to the resources and removals they were made of', () => {
    fc.assert(
      fc.property(
        fc.array(resource),
        fc.array(fc.string({ minLength: 1 })),
        fc.boolean(),
        (resources, removed, withAliases) => {
          const parts = resources.flatMap((one) => deltaResource(envelope.typeUrl, one, withAliases))
          const bytes = deltaResponse(envelope, [...parts, ...removed.map(removedResource)])
          const decoded = fromBinary(discovery.DeltaDiscoveryResponseSchema, bytes)
          assert.equal(decoded.nonce, 'n')
          assert.equal(decoded.systemVersionInfo, 'v/1')
          assert.equal(decoded.controlPlane?.identifier, 'cp')
          assert.deepEqual(decoded.removedResources, removed)
          assert.deepEqual(
            decoded.resources.map(({ name, version, aliases, resource: any }) => ({
              name,
              version,
              aliases,
              type: any?.typeUrl,
              body: [...(any?.value ?? [])],
            })),
            resources.map(({ name, version, aliases, body }) => ({
              name,
              version,
              aliases: withAliases ? aliases : [],
              type: envelope.typeUrl,
              body: [...body],
            })),
          )
        },
      ),
    )
  })

  test('of the state of the world decode too', () => {
    fc.assert(
      fc.property(fc.array(resource), (resources) => {
        const parts = resources.flatMap((one) => sotwResource(envelope.typeUrl, one))
        const decoded = fromBinary(discovery.DiscoveryResponseSchema, sotwResponse(envelope, parts))
        assert.equal(decoded.versionInfo, 'v/1')
        assert.equal(decoded.controlPlane?.identifier, 'cp')
        assert.deepEqual(
          decoded.resources.map(({ typeUrl, value }) => [typeUrl, [...value]]),
          resources.map(({ body }) => [envelope.typeUrl, [...body]]),
        )
      }),
    )
  })

  test('share the bytes of a resource that was sent before', () => {
    const one = { name: 'w', version: '1', aliases: ['/10.0.0.1'], body: new Uint8Array(100) }
    const [first, second] = [deltaResource(envelope.typeUrl, one, false), deltaResource(envelope.typeUrl, one, false)]
    assert.ok(first.every((part, index) => part === second[index]))
  })
})
