// Speaks ZDS to the server as a node proxy does, over a real socket with real descriptors.
import assert from 'node:assert/strict'
import { closeSync, fstatSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { connectSeqpacket, openNetworkNamespace, type SeqpacketConnection } from '../../linux/index.ts'
import { zds } from '../../proto/index.ts'
import { type ServedPod, startZdsServer, type ZdsServer, type ZdsServerOptions } from './zds-server.ts'

const linux = process.platform === 'linux' ? false : 'needs Linux'

function served(uid: string): ServedPod {
  return { uid, name: `pod-${uid}`, namespace: 'shop', serviceAccount: 'web' }
}

function start(
  t: TestContext,
  pods: readonly ServedPod[],
  more: Partial<ZdsServerOptions> = {},
): { server: ZdsServer; path: string } {
  const dir = mkdtempSync(join(tmpdir(), 'lateen-zds-'))
  const path = join(dir, 'ztunnel.sock')
  const server = startZdsServer({
    path,
    served: new Map(pods.map((pod) => [pod.uid, pod])),
    log: () => undefined,
    ...more,
  })
  t.after(async () => {
    await server[Symbol.asyncDispose]()
    rmSync(dir, { recursive: true })
  })
  return { server, path }
}

function proxy(t: TestContext, path: string) {
  const connection: SeqpacketConnection = connectSeqpacket(path)
  t.after(() => connection.close())
  const hello = (): Promise<void> =>
    connection.send(toBinary(zds.ZdsHelloSchema, create(zds.ZdsHelloSchema, { version: zds.Version.V1 })))
  const next = async () => {
    const packet = await connection.receive({ timeoutMs: 5_000 })
    if (packet === undefined) return undefined
    return { payload: fromBinary(zds.WorkloadRequestSchema, packet.message).payload, descriptors: packet.descriptors }
  }
  const answer = (error = ''): Promise<void> =>
    connection.send(
      toBinary(
        zds.WorkloadResponseSchema,
        create(zds.WorkloadResponseSchema, { payload: { case: 'ack', value: create(zds.AckSchema, { error }) } }),
      ),
    )
  return { connection, hello, next, answer }
}

/** Hello, then everything up to the end of the snapshot acknowledged. */
async function greet(one: ReturnType<typeof proxy>): Promise<string[]> {
  await one.hello()
  const seen: string[] = []
  for (;;) {
    const message = await one.next()
    await one.answer()
    const { payload } = message ?? {}
    seen.push(`${payload?.case} ${payload?.value && 'uid' in payload.value ? payload.value.uid : ''}`.trim())
    for (const fd of message?.descriptors ?? []) closeSync(fd)
    if (payload?.case === 'snapshotSent' || payload === undefined) return seen
  }
}

test('a proxy is told of every pod, then that this was all', { skip: linux }, async (t) => {
  using netns = openNetworkNamespace('/proc/self/ns/net')
  const { path } = start(t, [{ ...served('a'), netns }, served('b')])
  assert.deepEqual(await greet(proxy(t, path)), ['add a', 'keep b', 'snapshotSent'])
})

test('an added pod comes with its namespace, and counts only when the proxy serves it', { skip: linux }, async (t) => {
  using netns = openNetworkNamespace('/proc/self/ns/net')
  const { server, path } = start(t, [])
  await assert.rejects(server.add({ ...served('a'), netns }), { code: 'NO_PROXY', message: 'no ztunnel connection' })
  const one = proxy(t, path)
  await greet(one)
  const added = server.add({ ...served('a'), netns })
  const message = await one.next()
  assert.equal(message?.payload.case, 'add')
  const [fd = -1] = message?.descriptors ?? []
  assert.equal(fstatSync(fd, { bigint: true }).ino, netns.inode)
  closeSync(fd)
  await one.answer()
  await added
  const refused = server.add({ ...served('b'), netns })
  for (const given of (await one.next())?.descriptors ?? []) closeSync(given)
  await one.answer('failure to start proxy : address in use')
  await assert.rejects(refused, { code: 'REFUSED', message: 'failure to start proxy : address in use' })
})

test('additions go to the newest proxy, removals to all, and the older one takes over again', {
  skip: linux,
}, async (t) => {
  using netns = openNetworkNamespace('/proc/self/ns/net')
  const { server, path } = start(t, [])
  const old = proxy(t, path)
  await greet(old)
  const fresh = proxy(t, path)
  await greet(fresh)
  assert.equal(server.connections, 2)
  const removed = server.remove('x')
  for (const one of [old, fresh]) {
    assert.equal((await one.next())?.payload.case, 'del')
    await one.answer()
  }
  await removed
  const gone = fresh.next()
  fresh.connection.close()
  await gone.catch(() => undefined)
  const added = (async () => {
    // The server learns of the end of the stream in its own time: until then an addition fails as it would for the plugin.
    for (;;) {
      try {
        await server.add({ ...served('a'), netns })
        return
      } catch (error) {
        assert.equal((error as { code?: string }).code, 'CLOSED')
      }
    }
  })()
  const message = await old.next()
  for (const fd of message?.descriptors ?? []) closeSync(fd)
  await old.answer()
  await added
})

test('an answer that nobody asked for ends the connection', { skip: linux }, async (t) => {
  const { path } = start(t, [])
  const one = proxy(t, path)
  await greet(one)
  await one.answer()
  assert.equal(await one.next(), undefined)
})

test('a peer that does not say hello is not told of anything', { skip: linux }, async (t) => {
  const { server, path } = start(t, [served('secret')])
  const one = proxy(t, path)
  await one.connection.send(new Uint8Array([0xff, 0xff, 0xff]))
  assert.equal(await one.next(), undefined)
  assert.equal(server.connections, 0)
})

test('a pod that left before its turn in the snapshot is left out', { skip: linux }, async (t) => {
  using netns = openNetworkNamespace('/proc/self/ns/net')
  const pods = new Map([served('a'), { ...served('b'), netns }, served('c')].map((pod) => [pod.uid, pod]))
  const { path } = start(t, [], { served: pods })
  const one = proxy(t, path)
  await one.hello()
  assert.equal((await one.next())?.payload.case, 'keep')
  pods.delete('b')
  await one.answer()
  const { payload } = (await one.next()) ?? {}
  assert.deepEqual([payload?.case, payload?.case === 'keep' && payload.value.uid], ['keep', 'c'])
})

test('an answer that is no answer ends the connection and fails the question', { skip: linux }, async (t) => {
  using netns = openNetworkNamespace('/proc/self/ns/net')
  const { server, path } = start(t, [])
  const one = proxy(t, path)
  await greet(one)
  const added = assert.rejects(server.add({ ...served('a'), netns }), { code: 'CLOSED' })
  for (const fd of (await one.next())?.descriptors ?? []) closeSync(fd)
  await one.connection.send(new Uint8Array([0x12, 0x00]))
  await added
  assert.equal(server.connections, 0)
})

test('a proxy that dies before it answers fails the addition, and is not waited for', { skip: linux }, async (t) => {
  using netns = openNetworkNamespace('/proc/self/ns/net')
  const { server, path } = start(t, [])
  const one = proxy(t, path)
  await greet(one)
  const added = assert.rejects(server.add({ ...served('a'), netns }), { code: 'CLOSED' })
  for (const fd of (await one.next())?.descriptors ?? []) closeSync(fd)
  one.connection.close()
  await added
  await server.remove('a')
})

test('closing does not wait for a peer that says nothing', { skip: linux }, async (t) => {
  const { server, path } = start(t, [])
  const one = proxy(t, path)
  const ended = one.next()
  await server[Symbol.asyncDispose]()
  assert.equal(await ended, undefined)
})

test('a socket that cannot be made is named with its setting', () => {
  const path = join(tmpdir(), 'lateen-no-such-folder', 'ztunnel.sock')
  assert.throws(() => startZdsServer({ path, served: new Map(), log: () => undefined }), {
    code: 'INVALID_SETTING',
    message: `ZTUNNEL_UDS_ADDRESS: no socket can be made at ${path}: bind: ENOENT (${path})`,
  })
})
