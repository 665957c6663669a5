import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { reserveApiPort } from './api-port.ts'

test('instances that start at once get different ports, and each gets its own again', async (t) => {
  const directories = await Promise.all([0, 1, 2].map(() => mkdtemp(join(tmpdir(), 'lateen-port-'))))
  t.after(() => Promise.all(directories.map((directory) => rm(directory, { recursive: true }))))
  const reserved = await Promise.all(directories.map(reserveApiPort))
  const ports = reserved.map(({ port }) => port)
  assert.equal(new Set(ports).size, 3)
  for (const one of reserved) await one[Symbol.asyncDispose]()
  for (const [index, directory] of directories.entries()) {
    await using again = await reserveApiPort(directory)
    assert.equal(again.port, ports[index])
  }
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(ports[0], '127.0.0.1', resolve))
  await using other = await reserveApiPort(directories[0] ?? '')
  assert.notEqual(other.port, ports[0])
  server.close()
})
