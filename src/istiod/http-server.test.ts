import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { test } from 'node:test'
import { serveHttp, textReply } from './http-server.ts'

test('a target that is no URL is answered, and the server goes on', async () => {
  const server = await serveHttp(
    '127.0.0.1:0',
    (path) => (path === '/ready' ? () => textReply(200, '') : undefined),
    () => {},
  )
  const port = Number(server.address.split(':').at(-1))
  const ask = async (target: string): Promise<string> => {
    const socket = connect(port, '127.0.0.1').setEncoding('utf8')
    socket.write(`GET ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)
    let text = ''
    socket.on('data', (chunk: string) => {
      text += chunk
    })
    await once(socket, 'close')
    return text.split('\r\n')[0] ?? ''
  }
  assert.equal(await ask('//'), 'HTTP/1.1 404 Not Found')
  assert.equal(await ask('/ready'), 'HTTP/1.1 200 OK')
  await server.close()
})
