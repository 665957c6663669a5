import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { test } from 'node:test'
import { listenTcp } from './sockets.ts'

test('a burst of a thousand connections finds room while the thread is busy', {
  skip: process.platform !== 'linux',
}, async () => {
  const address = { ip: '127.0.0.77', port: 17_077 }
  const listener = await listenTcp(
    {
      address,
      namespace: undefined,
      mark: undefined,
      transparent: 'never',
      reusePort: false,
      keepalive: undefined,
      onError: (error) => assert.fail(error),
    },
    (socket) => socket.destroy(),
  )
  try {
    const shown = execFileSync('ss', ['-Htln', `src ${address.ip}:${address.port}`], { encoding: 'utf8' })
    const [, , room] = shown.trim().split(/\s+/)
    assert.equal(room, '1024')
  } finally {
    listener.close()
  }
})
