import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { create } from '@bufbuild/protobuf'
import { core } from '../../proto/index.ts'
import { type Attendance, type AttendedClient, attendStream } from './attendance.ts'
import { parseNode } from './node.ts'

const node = parseNode(
  create(core.NodeSchema, { id: 'sidecar~10.0.0.1~vm.ns~ns.svc', locality: { region: 'r', zone: 'z' } }),
)
const client: AttendedClient = { id: 'vm.ns-1', node, identities: [] }

function setUp(attend?: (told: string[]) => Promise<Attendance | undefined>) {
  const told: string[] = []
  const stream = attendStream(attend === undefined ? undefined : () => attend(told), {
    hold: (on) => told.push(on ? 'hold' : 'go on'),
    fail: (error) => told.push(`failed: ${(error as Error).message}`),
  })
  return { told, stream, settled: () => new Promise((resolve) => setImmediate(resolve)) }
}

const attendance = (told: string[]): Attendance => ({
  health: ({ isHealthy, message }) => told.push(isHealthy ? 'healthy' : `ill: ${message}`),
  end: () => told.push('end'),
})

describe('a client that is attended', () => {
  test('is served once that is done, in the order of what it said', async () => {
    const begun = Promise.withResolvers<Attendance | undefined>()
    const { told, stream, settled } = setUp(() => begun.promise)
    stream.begin(client)
    stream.whenAttended(() => told.push('first'))
    stream.whenAttended(() => stream.health({ isHealthy: false, message: 'no' }))
    assert.deepEqual(told, ['hold'])
    begun.resolve(attendance(told))
    await settled()
    stream.whenAttended(() => told.push('later'))
    stream.end()
    stream.end()
    assert.deepEqual(told, ['hold', 'go on', 'first', 'ill: no', 'later', 'end'])
  })

  test('that is gone before it was attended is told so, and nothing else', async () => {
    const begun = Promise.withResolvers<Attendance | undefined>()
    const { told, stream, settled } = setUp(() => begun.promise)
    stream.begin(client)
    stream.whenAttended(() => told.push('first'))
    stream.end()
    begun.resolve(attendance(told))
    await settled()
    assert.deepEqual(told, ['hold', 'end'])
  })

  test('that is refused is not served', async () => {
    const { told, stream, settled } = setUp(async () => {
      throw new Error('who are you')
    })
    stream.begin(client)
    stream.whenAttended(() => told.push('first'))
    await settled()
    assert.deepEqual(told, ['hold', 'failed: who are you'])
  })

  test('is served at once where nobody attends', () => {
    const { told, stream } = setUp()
    stream.begin(client)
    stream.whenAttended(() => told.push('first'))
    stream.end()
    assert.deepEqual(told, ['first'])
  })

  test('says where it is', () => {
    assert.equal(node.locality, 'r/z')
  })
})
