// A control plane that sends much and reads nothing.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { create, toBinary } from '@bufbuild/protobuf'
import { Server, ServerCredentials, type ServerDuplexStream } from '@grpc/grpc-js'
import { discovery } from '../../proto/index.ts'
import { address, condition, startClient } from '../test-streams.ts'
import { deltaMethod } from './stream.ts'

const most = 30_000

async function startDeafServer() {
  const calls: ServerDuplexStream<Buffer, Buffer>[] = []
  const server = new Server()
  const stream = { path: deltaMethod, requestStream: true, responseStream: true } as const
  const pass = (bytes: Buffer) => bytes
  server.addService(
    {
      stream: {
        ...stream,
        requestSerialize: pass,
        requestDeserialize: pass,
        responseSerialize: pass,
        responseDeserialize: pass,
      },
    },
    {
      stream(call: ServerDuplexStream<Buffer, Buffer>) {
        calls.push(call)
        call.on('error', () => undefined)
        let sent = 0
        const fill = (): void => {
          while (sent < most && !call.destroyed) {
            sent += 1
            const response = create(discovery.DeltaDiscoveryResponseSchema, { typeUrl: address, nonce: `n${sent}` })
            if (!call.write(Buffer.from(toBinary(discovery.DeltaDiscoveryResponseSchema, response)))) break
          }
        }
        call.on('drain', fill)
        fill()
      },
    },
  )
  const port = await new Promise<number>((resolve, reject) =>
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    ),
  )
  return { port, calls, [Symbol.dispose]: () => server.forceShutdown() }
}

test('of a control plane that reads nothing no more is read, until it reads again', { timeout: 30_000 }, async () => {
  using server = await startDeafServer()
  await using observed = startClient(server.port, { transport: { kind: 'plaintext' }, types: [{ typeUrl: address }] })
  const { updates, client } = observed
  await client.synced
  // Nothing is read of the requests: what the client may send is used up, and so is, soon after, what the server may.
  await condition(() => server.calls[0]?.writableNeedDrain === true && updates.length > 500)
  let before = -1
  await condition(() => {
    const isStill = updates.length === before
    before = updates.length
    return isStill && server.calls[0]?.writableNeedDrain === true
  })
  assert.ok(updates.length < most / 2, `${updates.length} updates`)
  server.calls[0]?.on('data', () => undefined)
  await condition(() => updates.length === most)
  assert.equal(server.calls.length, 1, 'on the same stream')
})

test('a control plane that goes on reading nothing is left for a new stream', { timeout: 30_000 }, async () => {
  using server = await startDeafServer()
  const ends: string[] = []
  await using _ = startClient(server.port, {
    transport: { kind: 'plaintext' },
    types: [{ typeUrl: address }],
    times: { mostRetryMs: 50, unreadMs: 200 },
    onStreamEnd: (end) => ends.push(end),
  })
  await condition(() => server.calls.length >= 2)
  assert.equal(ends[0], 'status')
})
