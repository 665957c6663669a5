import assert from 'node:assert/strict'
import { closeSync, existsSync, fstatSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { connectSeqpacket, listenSeqpacket } from './index.ts'

const directory = mkdtempSync(join(tmpdir(), 'd-seqpacket-'))
after(() => rmSync(directory, { recursive: true }))
let sockets = 0

async function pair() {
  sockets += 1
  const path = join(directory, `s${sockets}`)
  const listener = listenSeqpacket(path)
  const accepting = listener.accept()
  const client = connectSeqpacket(path)
  const server = await accepting
  assert.ok(server !== undefined)
  return { path, listener, client, server }
}

test('packets keep their bounds and their order', async () => {
  const { listener, client, server } = await pair()
  await using _ = listener
  await client.send(Buffer.from('one'))
  await client.send(Buffer.from('two'))
  assert.equal(Buffer.from((await server.receive())?.message ?? []).toString(), 'one')
  assert.equal(Buffer.from((await server.receive())?.message ?? []).toString(), 'two')
  const waiting = client.receive()
  await server.send(Buffer.from('three'))
  assert.equal(Buffer.from((await waiting)?.message ?? []).toString(), 'three')
  client.close()
  server.close()
})

test('a descriptor arrives as another descriptor of the same file', async () => {
  const { listener, client, server } = await pair()
  await using _ = listener
  const fd = openSync(process.execPath, 'r')
  await server.send(Buffer.from('take this'), [fd])
  const packet = await client.receive({ maxBytes: 1024 })
  const [received] = packet?.descriptors ?? []
  assert.ok(received !== undefined && received !== fd)
  assert.equal(fstatSync(received).ino, fstatSync(fd).ino)
  closeSync(received)
  closeSync(fd)
  client.close()
  server.close()
})

test('a packet that does not fit is an error, and its descriptors are closed', async () => {
  const { listener, client, server } = await pair()
  await using _ = listener
  const fd = openSync(process.execPath, 'r')
  await server.send(Buffer.alloc(100, 1), [fd])
  await assert.rejects(client.receive({ maxBytes: 10 }), { code: 'EMSGSIZE' })
  const next = openSync('/dev/null', 'r')
  assert.ok(next <= fd + 2)
  closeSync(next)
  closeSync(fd)
  client.close()
  server.close()
})

test('the end of the stream, a timeout and a local close all wake the reader', async () => {
  const { listener, client, server } = await pair()
  await using _ = listener
  await assert.rejects(client.receive({ timeoutMs: 20 }), { code: 'ETIMEDOUT' })
  const ending = client.receive()
  server.close()
  assert.equal(await ending, undefined)
  const second = listener.accept()
  const other = connectSeqpacket(join(directory, `s${sockets}`))
  const accepted = await second
  const reading = other.receive()
  other.close()
  await assert.rejects(reading, { code: 'ECANCELED' })
  accepted?.close()
  client.close()
})

test('closing a listener ends accept and removes its file', async () => {
  const path = join(directory, 'closing')
  const listener = listenSeqpacket(path)
  const accepting = listener.accept()
  listener.close()
  assert.equal(await accepting, undefined)
  assert.equal(existsSync(path), false)
})

test('a stale socket file is replaced, another file is not', async () => {
  const path = join(directory, 'stale')
  const first = listenSeqpacket(path)
  const second = listenSeqpacket(path)
  first.close()
  assert.equal(existsSync(path), true)
  second.close()
  writeFileSync(path, '')
  assert.throws(() => listenSeqpacket(path), { code: 'EADDRINUSE' })
  assert.throws(() => connectSeqpacket(join(directory, 'absent')), { code: 'ENOENT' })
})

test('a full receiver holds the sender back until it reads', async () => {
  const { listener, client, server } = await pair()
  await using _ = listener
  const count = 2_000
  const sending = (async () => {
    for (let index = 0; index < count; index += 1) await client.send(Buffer.alloc(1000, index % 251))
  })()
  for (let index = 0; index < count; index += 1) {
    const packet = await server.receive()
    assert.equal(packet?.message[0], index % 251)
  }
  await sending
  client.close()
  server.close()
})
