// Enrolment with a recording redirector and API client, real namespace handles, and a node proxy over the real socket.
import assert from 'node:assert/strict'
import { closeSync, existsSync, mkdtempSync, readlinkSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import type { Pod } from 'kubernetes-types/core/v1.js'
import { type KubeClient, KubeError } from '../../kube/index.ts'
import { connectSeqpacket, LinuxError, type NetworkNamespace, openNetworkNamespace } from '../../linux/index.ts'
import { zds } from '../../proto/index.ts'
import { ambientDefaults, type Redirector } from '../../redirect/index.ts'
import { createEnrollment } from './enrollment.ts'
import { startZdsServer } from './zds-server.ts'

const own = '/proc/self/ns/net'
/** Another kind of namespace, as a handle that is not the same. */
const other = '/proc/self/ns/uts'

function pod(more: { uid?: string; annotation?: string; ips?: readonly string[] } = {}): Pod {
  const { uid = 'u1', annotation, ips = ['10.0.0.1'] } = more
  const annotations: Record<string, string> =
    annotation === undefined ? {} : { 'ambient.istio.io/redirection': annotation }
  return {
    metadata: { name: 'web', namespace: 'shop', uid, annotations },
    status: { podIPs: ips.map((ip) => ({ ip })) },
  }
}

interface Faults {
  program?: Error
  unprogram?: Error
  patch?: Error
  find?: boolean
}

function setUp(t: TestContext, faults: Faults = {}, proxy = true) {
  const done: string[] = []
  const told: string[] = []
  const warned: string[] = []
  const found: NetworkNamespace[] = []
  const fail = (error: Error | undefined): void => {
    if (error !== undefined) throw error
  }
  const redirector: Redirector = {
    settings: ambientDefaults,
    probeSet: {
      create: async () => undefined,
      add: async (entries) => void done.push(`set+ ${entries.map(({ ip, uid }) => `${ip}=${uid}`)}`),
      remove: async (entries) => void done.push(`set- ${entries.map(({ ip, uid }) => `${ip}=${uid}`)}`),
      sync: async (entries) => void done.push(`sync ${entries.map(({ ip, uid }) => `${ip}=${uid}`)}`),
      list: async () => [],
      destroy: async () => undefined,
    },
    programPod: async (netns) => {
      // The handle has to be open now, and of a namespace.
      assert.match(readlinkSync(netns), /^(net|uts):/)
      fail(faults.program)
      done.push('program')
    },
    unprogramPod: async (netns) => {
      assert.match(readlinkSync(netns), /^(net|uts):/)
      fail(faults.unprogram)
      done.push('unprogram')
    },
    programHost: async () => undefined,
    unprogramHost: async () => undefined,
  }
  const client = {
    patch: async (
      _resource: unknown,
      _key: unknown,
      { body }: { body: { metadata: { uid: string; annotations: Record<string, string | null> } } },
      options: { subresource: string },
    ) => {
      assert.equal(options.subresource, 'status')
      fail(faults.patch)
      done.push(`annotate ${body.metadata.uid} ${body.metadata.annotations['ambient.istio.io/redirection']}`)
    },
  } as unknown as KubeClient
  const enrollment = createEnrollment({
    redirector,
    client,
    reconcile: true,
    findNamespaces: async (wanted) => {
      if (faults.find === false) return new Map()
      const entries = [...wanted.keys()].map((uid) => [uid, openNetworkNamespace(own)] as const)
      found.push(...entries.map(([, netns]) => netns))
      return new Map(entries)
    },
    log: (level, message) => void (level === 'warn' && warned.push(message)),
  })
  t.after(() => enrollment[Symbol.dispose]())
  if (proxy) {
    enrollment.useProxies({
      add: async ({ uid }) => void told.push(`add ${uid}`),
      remove: async (uid) => void told.push(`del ${uid}`),
    })
  }
  return { enrollment, done, told, warned, found, faults }
}

/** A closed handle refuses to name its descriptor. */
function isOpen(netns: NetworkNamespace | undefined): boolean {
  try {
    return netns !== undefined && existsSync(`/proc/self/fd/${netns.fd}`)
  } catch (error) {
    if (error instanceof LinuxError && error.code === 'EBADF') return false
    throw error
  }
}

test('capturing: rules, then the proxy, then the node set, and only then the annotation', async (t) => {
  const { enrollment, done, told } = setUp(t)
  await enrollment.enroll(pod())
  assert.deepEqual(done, ['program', 'set+ 10.0.0.1=u1', 'annotate u1 enabled'])
  assert.deepEqual(told, ['add u1'])
})

test('a pod that is being set up takes path and addresses from the plugin', async (t) => {
  const { enrollment, done, found } = setUp(t)
  await enrollment.enrollFromPlugin(pod({ ips: [] }), own, ['10.0.0.9', 'fd00::9'])
  assert.deepEqual(done, ['program', 'set+ 10.0.0.9=u1,fd00::9=u1', 'annotate u1 enabled'])
  assert.deepEqual(found, [])
  await assert.rejects(enrollment.enrollFromPlugin(pod({ uid: 'u2' }), '/nonexistent', []), { retryable: false })
  assert.equal(enrollment.knows('u2'), false)
})

test('without a proxy a pod is pending, once, and to be tried again', async (t) => {
  const { enrollment, done } = setUp(t, {}, false)
  await assert.rejects(enrollment.enroll(pod()), { message: 'the node agent is still starting' })
  assert.deepEqual(done, ['program', 'annotate u1 pending'])
  done.length = 0
  await assert.rejects(enrollment.enroll(pod({ annotation: 'pending' })), (error: { retryable?: boolean }) => {
    return error.retryable === undefined
  })
  assert.deepEqual(done, ['program'], 'it says so already')
  assert.equal(enrollment.knows('u1'), true, 'a proxy that comes is told of it')
})

test('rules that cannot be made: a new pod is forgotten, one that a proxy may serve is not', async (t) => {
  const { enrollment, faults, found } = setUp(t, { program: new Error('no iptables') })
  await assert.rejects(enrollment.enroll(pod()), { message: 'no iptables', retryable: false })
  assert.equal(enrollment.knows('u1'), false)
  assert.equal(isOpen(found[0]), false)
  delete faults.program
  await enrollment.enroll(pod())
  faults.program = new Error('busy')
  await assert.rejects(enrollment.enroll(pod()), { message: 'busy' })
  assert.equal(isOpen(enrollment.served.get('u1')?.netns), true)
})

test('one handle a pod: the same namespace keeps the old one, another one replaces it', async (t) => {
  const { enrollment } = setUp(t)
  await enrollment.enrollFromPlugin(pod(), own, [])
  const first = enrollment.served.get('u1')?.netns
  await enrollment.enrollFromPlugin(pod(), own, [])
  assert.equal(enrollment.served.get('u1')?.netns, first)
  await enrollment.enrollFromPlugin(pod(), other, [])
  const second = enrollment.served.get('u1')?.netns
  assert.notEqual(second?.inode, first?.inode)
  assert.throws(() => readlinkSync(`/proc/self/fd/${first?.fd}`), 'closed')
  enrollment[Symbol.dispose]()
  assert.equal(isOpen(second), false)
  assert.equal(enrollment.served.size, 0)
})

test('leaving the mesh undoes everything; a deleted pod needs no rules removed', async (t) => {
  const { enrollment, done, told, found } = setUp(t)
  await enrollment.enroll(pod())
  done.length = 0
  await enrollment.unenroll(pod(), false, ['10.0.0.1'])
  assert.deepEqual(done, ['set- 10.0.0.1=u1', 'unprogram', 'annotate u1 null'])
  await enrollment.enroll(pod())
  done.length = 0
  await enrollment.unenroll(pod(), true, ['10.0.0.1'])
  assert.deepEqual(done, ['set- 10.0.0.1=u1', 'annotate u1 null'])
  assert.deepEqual(told, ['add u1', 'del u1', 'add u1', 'del u1'])
  assert.deepEqual(found.map(isOpen), [false, false])
})

test('the handle stays until the rules are gone', async (t) => {
  const { enrollment, faults, told } = setUp(t, { unprogram: new Error('lock is held') })
  await enrollment.enroll(pod())
  await assert.rejects(enrollment.unenroll(pod(), false, []), { message: 'lock is held' })
  assert.equal(isOpen(enrollment.served.get('u1')?.netns), true)
  assert.deepEqual(told, ['add u1'], 'the proxy serves it as long')
  delete faults.unprogram
  await enrollment.unenroll(pod(), false, [])
  assert.equal(enrollment.knows('u1'), false)
})

test('rules of a pod that an earlier agent left pending are found and removed', async (t) => {
  const { enrollment, done } = setUp(t)
  await enrollment.unenroll(pod({ annotation: 'pending' }), false, ['10.0.0.1'])
  assert.deepEqual(done, ['set- 10.0.0.1=u1', 'unprogram', 'annotate u1 null'])
})

test('rules that are nowhere to be found do not keep a pod from leaving', async (t) => {
  const { enrollment, done, warned } = setUp(t, { find: false })
  await enrollment.unenroll(pod(), false, [])
  assert.deepEqual(done, ['set- ', 'annotate u1 null'])
  assert.match(warned[0] ?? '', /its rules may stay/)
})

for (const [code, isDelete, isRetried] of [
  [404, false, false],
  [409, false, true],
  [500, true, false],
] as const) {
  test(`an annotation that is not removed (${code}, ${isDelete ? 'deleted' : 'running'})`, async (t) => {
    const { enrollment, faults } = setUp(t)
    await enrollment.enroll(pod())
    faults.patch = new KubeError('no', { code, reason: '' })
    const left = enrollment.unenroll(pod(), isDelete, [])
    await (isRetried ? assert.rejects(left, { code }) : left)
  })
}

test('work on one pod is done one after the other', async (t) => {
  const { enrollment, told } = setUp(t)
  const both = [
    enrollment.enrollFromPlugin(pod(), own, []),
    enrollment.enroll(pod()),
    enrollment.unenroll(pod(), true, []),
  ]
  await Promise.all(both)
  assert.deepEqual(told, ['add u1', 'add u1', 'del u1'])
  assert.equal(enrollment.knows('u1'), false)
})

test('after a restart the node set is pruned only when every address is known', async (t) => {
  const { enrollment, done } = setUp(t)
  await enrollment.restore([pod(), pod({ uid: 'u2', ips: ['10.0.0.2'] })])
  assert.deepEqual(done, ['program', 'program', 'sync 10.0.0.1=u1,10.0.0.2=u2'])
  done.length = 0
  await enrollment.restore([pod({ uid: 'u3', ips: [] })])
  assert.deepEqual(done, ['program', 'set+ '])
})

test('a pod whose namespace is not found after a restart is kept by the proxy that serves it', async (t) => {
  const { enrollment } = setUp(t, { find: false })
  await enrollment.restore([pod()])
  assert.deepEqual(enrollment.served.get('u1')?.netns, undefined)
  assert.equal(enrollment.knows('u1'), true)
})

test('with a real proxy: it dies in the middle, comes back, and is told of the pod', async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'lateen-enroll-'))
  const path = join(dir, 'ztunnel.sock')
  const { enrollment, done } = setUp(t, {}, false)
  const connected = Promise.withResolvers<void>()
  const server = startZdsServer({
    path,
    served: enrollment.served,
    log: () => undefined,
    onConnections: (count) => count === 1 && connected.resolve(),
  })
  t.after(async () => {
    await server[Symbol.asyncDispose]()
    rmSync(dir, { recursive: true })
  })
  enrollment.useProxies(server)
  await assert.rejects(enrollment.enroll(pod()), { code: 'NO_PROXY' })

  const proxy = () => {
    const connection = connectSeqpacket(path)
    t.after(() => connection.close())
    const next = async (): Promise<string | undefined> => {
      const packet = await connection.receive({ timeoutMs: 5_000 })
      for (const fd of packet?.descriptors ?? []) closeSync(fd)
      return packet === undefined ? undefined : fromBinary(zds.WorkloadRequestSchema, packet.message).payload.case
    }
    const hello = toBinary(zds.ZdsHelloSchema, create(zds.ZdsHelloSchema, { version: zds.Version.V1 }))
    const ack = toBinary(
      zds.WorkloadResponseSchema,
      create(zds.WorkloadResponseSchema, { payload: { case: 'ack', value: create(zds.AckSchema, {}) } }),
    )
    return { connection, next, hello: () => connection.send(hello), ack: () => connection.send(ack) }
  }
  const first = proxy()
  await first.hello()
  assert.equal(await first.next(), 'add', 'what is pending is in its snapshot')
  await first.ack()
  assert.equal(await first.next(), 'snapshotSent')
  await first.ack()
  await connected.promise
  const interrupted = assert.rejects(enrollment.enroll(pod({ annotation: 'pending' })), { code: 'CLOSED' })
  assert.equal(await first.next(), 'add')
  first.connection.close()
  await interrupted

  const second = proxy()
  await second.hello()
  for (const expected of ['add', 'snapshotSent']) {
    assert.equal(await second.next(), expected)
    await second.ack()
  }
  const enrolled = enrollment.enroll(pod({ annotation: 'pending' }))
  assert.equal(await second.next(), 'add')
  await second.ack()
  await enrolled
  assert.equal(done.at(-1), 'annotate u1 enabled')
})
