// Topic zds: the real client and pod list against an agent played here; starting a proxy is a stand-in that knows which namespaces are blocked.
import assert from 'node:assert/strict'
import { closeSync, mkdtempSync, openSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { listenSeqpacket, type SeqpacketConnection } from '../../../src/linux/index.ts'
import { silentLogging } from '../../../src/observability/index.ts'
import { zds } from '../../../src/proto/index.ts'
import { createPods, followNodeAgent, type ServedPod, ZdsProtocolError } from '../../../src/ztunnel/pods/index.ts'
import { encodeAck, encodeHello } from '../../../src/ztunnel/pods/zds-messages.ts'
import type { Data, TopicRunner } from './topic.ts'

const retryMs = 100

export const runZds: TopicRunner = async (one) => {
  if (one.kind === 'bytes') return runBytes(one)
  const dir = mkdtempSync(join(tmpdir(), 'lateen-zds-'))
  try {
    await runSteps(one, dir)
  } finally {
    rmSync(dir, { recursive: true })
  }
}

async function runSteps(one: Data, dir: string): Promise<void> {
  const blocked = new Set<string>(one.blocked ?? [])
  const names = new Map<bigint, string>()
  const openNamespace = (name: string): number => {
    const path = join(dir, `netns-${name}`)
    writeFileSync(path, '')
    names.set(statSync(path, { bigint: true }).ino, name)
    return openSync(path, 'r')
  }
  const running = new Map<ServedPod, string>()
  let starts = 0
  const pods = createPods({
    retryMs,
    start: async (_, namespace) => {
      const name = names.get(namespace.inode) ?? 'unknown'
      if (blocked.has(name)) throw new Error('failed to bind to address [::]:15008: Address in use')
      starts += 1
      const proxy: ServedPod = { drain: async () => {}, stop: async () => void running.delete(proxy) }
      running.set(proxy, name)
      return proxy
    },
  })
  const listener = listenSeqpacket(join(dir, 'zds.sock'))
  const stop = new AbortController()
  let ready = false
  let failure: unknown
  const following = followNodeAgent(
    {
      socketPath: join(dir, 'zds.sock'),
      pods,
      log: silentLogging().scope('test'),
      random: () => 0,
      onReadiness: (now) => {
        ready = now
      },
    },
    stop.signal,
  ).catch((error: unknown) => {
    failure = error
  })
  const accept = async (): Promise<SeqpacketConnection> => {
    const connection = await listener.accept()
    assert.ok(connection)
    const hello = await connection.receive({ timeoutMs: 2000 })
    assert.ok(hello)
    assert.equal(fromBinary(zds.ZdsHelloSchema, hello.message).version, zds.Version.V1)
    return connection
  }
  const check = (expect: Data): void => {
    const list = pods.list()
    if (expect.running !== undefined) {
      assert.equal(running.size, Object.keys(expect.running).length)
      assert.deepEqual(new Set(running.values()), new Set(Object.values(expect.running)))
      const up = list.filter((pod) => pod.state === 'Up').map((pod) => pod.uid)
      assert.deepEqual(up.sort(), Object.keys(expect.running).sort())
    }
    const pending = list.filter((pod) => pod.state === 'Pending').map((pod) => pod.uid)
    if (expect.pending !== undefined) assert.deepEqual(pending, expect.pending)
    if (expect.ready !== undefined) assert.equal(ready, expect.ready)
    if (expect.starts !== undefined) assert.equal(starts, expect.starts)
  }
  let connection = await accept()
  const before = openDescriptors()
  try {
    for (const step of one.steps) {
      if (step.newStream === true) {
        connection.close()
        connection = await accept()
      }
      if (step.send !== undefined) await sendAndCompare(connection, step, openNamespace)
      if (step.unblock !== undefined) blocked.delete(step.unblock)
      if (step.waitSeconds !== undefined) await waitForRetries(pods, one.expect)
      if (step.state !== undefined) check(step.state)
    }
    check(one.expect)
    if (one.expect.streamClosed === true) assert.equal(await connection.receive({ timeoutMs: 2000 }), undefined)
    if (one.expect.processExit !== undefined) {
      await following
      assert.ok(failure instanceof ZdsProtocolError)
    }
    if (one.expect.leakedFds !== undefined) assert.equal(openDescriptors() <= before, true)
  } finally {
    stop.abort()
    connection.close()
    listener.close()
    await following
    await pods.stop('test ended')
  }
}

/** Long enough for several retries, shorter once the expected pods run. */
async function waitForRetries(pods: ReturnType<typeof createPods>, expect: Data): Promise<void> {
  const wanted = Object.keys(expect.running).length
  for (let waited = 0; waited < 20; waited += 1) {
    await delay(retryMs)
    const up = pods.list().filter((pod) => pod.state === 'Up').length
    if (waited >= 3 && up === wanted) return
  }
}

async function sendAndCompare(
  connection: SeqpacketConnection,
  step: Data,
  openNamespace: (name: string) => number,
): Promise<void> {
  const { add } = step.send
  const count = step.fds ?? (add === undefined ? 0 : 1)
  const descriptors = Array.from({ length: count }, () => openNamespace(add?.netns ?? 'stray'))
  try {
    await connection.send(encodeRequest(step.send), descriptors)
  } finally {
    for (const descriptor of descriptors) closeSync(descriptor)
  }
  const answer = await connection.receive({ timeoutMs: 5000 })
  assert.ok(answer, 'the proxy ended the connection without an answer')
  const { payload } = fromBinary(zds.WorkloadResponseSchema, answer.message)
  assert.equal(payload.case, 'ack')
  const error = payload.value?.error ?? ''
  if (step.ack !== undefined) assert.equal(error, step.ack)
  if (step.ackPrefix !== undefined) assert.ok(error.startsWith(step.ackPrefix), error)
  if (step.ackContains !== undefined) assert.ok(error.includes(step.ackContains), error)
}

function encodeRequest(send: Data): Uint8Array {
  const [[kind, body]] = Object.entries(send) as [[string, Data]]
  const infoOf = (info: Data) => ({
    name: info.name,
    namespace: info.namespace,
    serviceAccount: info.serviceAccount ?? info.service_account,
  })
  const payloads: Record<string, () => zds.WorkloadRequest['payload']> = {
    add: () => ({
      case: 'add',
      value: create(zds.AddWorkloadSchema, { uid: body.uid, workloadInfo: infoOf(body.info ?? body.workload_info) }),
    }),
    del: () => ({ case: 'del', value: create(zds.DelWorkloadSchema, { uid: body.uid }) }),
    keep: () => ({ case: 'keep', value: create(zds.KeepWorkloadSchema, { uid: body.uid }) }),
    snapshot_sent: () => ({ case: 'snapshotSent', value: create(zds.SnapshotSentSchema) }),
  }
  const payload = payloads[kind]?.()
  assert.ok(payload, kind)
  return toBinary(zds.WorkloadRequestSchema, create(zds.WorkloadRequestSchema, { payload }))
}

function runBytes(one: Data): void {
  for (const { message, hex } of one.table) {
    const bytes =
      message.hello !== undefined
        ? encodeHello()
        : message.request !== undefined
          ? encodeRequest(message.request)
          : encodeAck(message.response.ack.error)
    assert.equal(Buffer.from(bytes).toString('hex'), hex)
  }
}

const openDescriptors = (): number => readdirSync('/proc/self/fd').length
