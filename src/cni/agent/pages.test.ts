import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { test } from 'node:test'
import { servePages } from './pages.ts'

/** The status line of the answer to a request as it is written. */
async function ask(port: number, target: string): Promise<string> {
  const socket = connect(port, '127.0.0.1').setEncoding('utf8')
  socket.write(`GET ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)
  let text = ''
  socket.on('data', (chunk: string) => {
    text += chunk
  })
  await once(socket, 'close')
  return text.split('\r\n')[0] ?? ''
}

test('a page that fails and a target that is no URL are answered, and the server goes on', async () => {
  await using pages = await servePages(0, (path) => {
    if (path === '/broken') throw new Error('no /proc here')
    return path === '/healthz' ? { status: 200, type: 'text/plain', body: 'ok' } : undefined
  })
  assert.equal(await ask(pages.port, '/broken'), 'HTTP/1.1 500 Internal Server Error')
  assert.equal(await ask(pages.port, '//'), 'HTTP/1.1 404 Not Found')
  assert.equal(await ask(pages.port, '/healthz?verbose'), 'HTTP/1.1 200 OK')
})
