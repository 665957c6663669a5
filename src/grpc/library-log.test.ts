import assert from 'node:assert/strict'
import { connect } from 'node:http2'
import { type TestContext, test } from 'node:test'
import { type handleClientStreamingCall, Server, ServerCredentials } from '@grpc/grpc-js'
import { takeLibraryLog } from './library-log.ts'

/** Calls a server of the library with a header; resolves when the call has ended. */
async function callWith(t: TestContext, headers: Readonly<Record<string, string>>): Promise<void> {
  const server = new Server()
  const bytes = (value: Buffer): Buffer => value
  const method = { path: '/a.Service/Method', requestStream: true, responseStream: false } as const
  const codec = {
    requestSerialize: bytes,
    requestDeserialize: bytes,
    responseSerialize: bytes,
    responseDeserialize: bytes,
  }
  const implementation: handleClientStreamingCall<Buffer, Buffer> = (_call, callback) => callback(null, Buffer.alloc(0))
  server.addService({ Method: { ...method, ...codec } }, { Method: implementation })
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    )
  })
  t.after(() => server.forceShutdown())
  const session = connect(`http://127.0.0.1:${port}`)
  t.after(() => session.destroy())
  const grpc = { ':method': 'POST', ':path': '/a.Service/Method', 'content-type': 'application/grpc', te: 'trailers' }
  const stream = session.request({ ...grpc, ...headers })
  stream.resume().end()
  await new Promise((resolve) => stream.on('close', resolve))
}

test('a header that cannot be read is told of by its name alone', async (t) => {
  const lines: string[] = []
  takeLibraryLog((line) => lines.push(line))
  await callWith(t, { authorization: 'Bearer very-secret\u00e9' })
  assert.deepEqual(lines, ['a header cannot be read: authorization'])
})
