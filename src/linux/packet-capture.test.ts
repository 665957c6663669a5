import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { openNetworkNamespace } from './namespace.ts'
import { capturePackets } from './packet-capture.ts'

test('packets of a namespace are seen, and nobody else’s', {
  skip: process.getuid?.() === 0 ? false : 'needs root',
}, async (t) => {
  const name = `ltr-${randomBytes(4).toString('hex')}`
  execFileSync('ip', ['netns', 'add', name])
  t.after(() => void execFileSync('ip', ['netns', 'del', name]))
  execFileSync('ip', ['-n', name, 'link', 'set', 'lo', 'up'])
  using netns = openNetworkNamespace(`/run/netns/${name}`)
  const seen: string[] = []
  {
    await using _capture = capturePackets(netns, (packet) => seen.push(Buffer.from(packet).toString('latin1')))
    const send = ['bash', '-c', 'echo -n hidden-words > /dev/udp/127.0.0.1/9']
    execFileSync('ip', ['netns', 'exec', name, ...send])
    execFileSync('bash', ['-c', 'echo -n other-words > /dev/udp/127.0.0.1/9'])
  }
  assert.ok(seen.some((packet) => packet.includes('hidden-words')))
  assert.ok(!seen.some((packet) => packet.includes('other-words')))
})
