import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { create, toBinary } from '@bufbuild/protobuf'
import { listenSeqpacket } from '../../linux/index.ts'
import { silentLogging } from '../../observability/index.ts'
import { zds } from '../../proto/index.ts'
import { createPods, followNodeAgent } from './index.ts'

const snapshotSent = toBinary(
  zds.WorkloadRequestSchema,
  create(zds.WorkloadRequestSchema, { payload: { case: 'snapshotSent', value: {} } }),
)

/** Follows an agent that takes connections and ends each, one after the other; `talks`: not before a first message was answered. */
async function follow(connections: number, talks: boolean): Promise<number> {
  const socketPath = join(tmpdir(), `zds-${randomBytes(4).toString('hex')}.sock`)
  await using agent = listenSeqpacket(socketPath)
  const stop = new AbortController()
  const pods = createPods({ start: () => Promise.reject(new Error('no pod is announced')) })
  const log = silentLogging().scope('inpod')
  const following = followNodeAgent(
    { socketPath, pods, log, random: () => 0.5, onReadiness: () => undefined },
    stop.signal,
  )
  const startedAt = performance.now()
  for (let taken = 0; taken < connections; taken += 1) {
    const connection = await agent.accept()
    assert.ok(connection)
    await connection.receive()
    if (talks) {
      await connection.send(snapshotSent)
      await connection.receive()
    }
    connection.close()
  }
  const tookMs = performance.now() - startedAt
  stop.abort()
  await following
  rmSync(socketPath, { force: true })
  return tookMs
}

test('an agent that hangs up without a word is given ever more time', async () => {
  const waitsMs = 5 + 10 + 20 + 40 + 80 + 160
  const tookMs = await follow(7, false)
  assert.ok(tookMs >= waitsMs, `${tookMs}`)
})

test('one that ends a stream in order is connected to again at once', async () => {
  const tookMs = await follow(40, true)
  // Waits that doubled would be at their most of fifteen seconds by now.
  assert.ok(tookMs < 10_000, `${tookMs}`)
})
