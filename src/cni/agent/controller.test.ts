import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Namespace, Pod } from 'kubernetes-types/core/v1.js'
import { defaultEnablementSelectors } from '../eligibility.ts'
import { createEnrollmentController, type Enrollment } from './controller.ts'

const settings = { selectors: defaultEnablementSelectors, excludeNamespaces: [], systemNamespace: 'istio-system' }

function namespace(isAmbient: boolean): Namespace {
  return { metadata: { name: 'shop', labels: isAmbient ? { 'istio.io/dataplane-mode': 'ambient' } : {} } }
}

function pod(more: { name?: string; uid?: string; annotation?: string; ip?: string; phase?: string } = {}): Pod {
  const { name = 'web', uid = 'u1', annotation, ip = '10.0.0.1', phase = 'Running' } = more
  const annotations: Record<string, string> =
    annotation === undefined ? {} : { 'ambient.istio.io/redirection': annotation }
  return { metadata: { name, namespace: 'shop', uid, annotations }, status: { phase, podIPs: [{ ip }] } }
}

/** An enrolment that does as the test says, one call at a time under the test's control. */
function recording(known: readonly string[] = []) {
  const done: string[] = []
  const script: Partial<Record<'enroll' | 'unenroll' | 'restore', () => Promise<void>>> = {}
  const enrollment: Enrollment = {
    enroll: async ({ metadata }) => {
      await script.enroll?.()
      done.push(`enroll ${metadata?.uid}`)
    },
    unenroll: async ({ metadata }, isDelete, ips) => {
      await script.unenroll?.()
      done.push(`unenroll ${metadata?.uid} ${isDelete ? 'deleted' : 'running'} ${ips.join()}`)
    },
    addToHostSet: async (_pod, ips) => void done.push(`host-set ${ips.join()}`),
    knows: (uid) => known.includes(uid),
    restore: async (pods) => {
      await script.restore?.()
      done.push(`restore ${pods.map(({ metadata }) => metadata?.uid).join()}`)
    },
  }
  return { enrollment, done, script }
}

function failing(times: number, error: Error = new Error('not now')): () => Promise<void> {
  let left = times
  return async () => {
    left -= 1
    if (left >= 0) throw error
  }
}

function start(enrollment: Enrollment, retryDelayMs: (attempt: number) => number = () => 0) {
  const log: string[] = []
  const controller = createEnrollmentController({
    settings,
    enrollment,
    retryDelayMs,
    log: (level, message) => void (level === 'warn' && log.push(message)),
  })
  return { controller, log }
}

test('what fails is repeated, with a longer delay each time, and told', async () => {
  const { enrollment, done, script } = recording()
  const attempts: number[] = []
  const { controller, log } = start(enrollment, (attempt) => {
    attempts.push(attempt)
    return 0
  })
  await using _ = controller
  script.enroll = failing(3)
  await controller.start([pod()], [namespace(true)])
  await controller.idle()
  assert.deepEqual(attempts, [1, 2, 3])
  assert.deepEqual(done, ['restore ', 'enroll u1'])
  assert.match(log[0] ?? '', /^pod shop\/web: enroll failed, next attempt in 0 ms: not now$/)
})

test('what repeating does not mend is not repeated', async () => {
  const { enrollment, done, script } = recording()
  const { controller, log } = start(enrollment)
  await using _ = controller
  script.enroll = failing(1, Object.assign(new Error('no iptables'), { retryable: false }))
  await controller.start([pod()], [namespace(true)])
  await controller.idle()
  assert.deepEqual(done, ['restore '])
  assert.deepEqual(log, ['pod shop/web: enroll failed: no iptables'])
})

test('each attempt decides by the newest state: a pod that left the mesh meanwhile is not captured', async () => {
  const { enrollment, done, script } = recording()
  const { controller } = start(enrollment)
  await using _ = controller
  script.enroll = async () => {
    controller.namespaceChanged(namespace(false))
    throw new Error('no proxy')
  }
  await controller.start([pod()], [namespace(true)])
  await controller.idle()
  assert.deepEqual(done, ['restore '])
})

test('a pod that is deleted while its capture is repeated is not waited for', async () => {
  const { enrollment, done, script } = recording(['u1'])
  const { controller } = start(enrollment, () => 3_600_000)
  await using _ = controller
  const failed = Promise.withResolvers<void>()
  script.enroll = async () => {
    failed.resolve()
    throw new Error('no proxy')
  }
  await controller.start([pod()], [namespace(true)])
  await failed.promise
  controller.podDeleted(pod())
  await controller.idle()
  assert.deepEqual(done, ['restore ', 'unenroll u1 deleted 10.0.0.1'])
})

test('a pod of the same name is another pod: the old one leaves, then the new one comes', async () => {
  const { enrollment, done, script } = recording()
  const { controller } = start(enrollment)
  await using _ = controller
  await controller.start([pod({ annotation: 'enabled' })], [namespace(true)])
  await controller.idle()
  script.unenroll = failing(2)
  controller.podDeleted(pod({ annotation: 'enabled' }))
  controller.podUpdated(pod({ annotation: 'enabled' }), pod({ uid: 'u2', ip: '10.0.0.2' }))
  await controller.idle()
  assert.deepEqual(done, ['restore u1', 'unenroll u1 deleted 10.0.0.1', 'enroll u2'])
})

test('what the plugin captured leaves although no annotation was seen', async () => {
  const { enrollment, done } = recording(['u1', 'u2'])
  const { controller } = start(enrollment)
  await using _ = controller
  await controller.start([pod(), pod({ name: 'job', uid: 'u2', phase: 'Succeeded' })], [])
  controller.podDeleted(pod())
  controller.podUpdated(pod({ name: 'job', uid: 'u2' }), pod({ name: 'job', uid: 'u2', phase: 'Succeeded' }))
  await controller.idle()
  assert.deepEqual(done, ['restore ', 'unenroll u1 deleted 10.0.0.1', 'unenroll u2 deleted 10.0.0.1'])
})

test('events that come while the present state is taken over are handled after it', async () => {
  const { enrollment, done, script } = recording()
  const { controller } = start(enrollment)
  await using _ = controller
  const restoring = Promise.withResolvers<void>()
  script.restore = () => restoring.promise
  const started = controller.start([pod({ annotation: 'enabled' })], [namespace(true)])
  controller.podDeleted(pod({ annotation: 'enabled' }))
  restoring.resolve()
  await started
  await controller.idle()
  assert.deepEqual(done, ['restore u1', 'unenroll u1 deleted 10.0.0.1'])
})

test('updates that wait become one, with the addresses from before the first', async () => {
  const { enrollment, done, script } = recording()
  const { controller } = start(enrollment)
  await using _ = controller
  await controller.start([pod()], [namespace(true)])
  const busy = Promise.withResolvers<void>()
  script.enroll = () => busy.promise
  const enabled = (ip: string): Pod => pod({ annotation: 'enabled', ip })
  controller.podUpdated(pod(), enabled('10.0.0.2'))
  for (let index = 3; index < 50; index += 1) {
    controller.podUpdated(enabled(`10.0.0.${index - 1}`), enabled(`10.0.0.${index}`))
  }
  busy.resolve()
  await controller.idle()
  assert.deepEqual(
    done.filter((one) => one.startsWith('host-set')),
    ['host-set 10.0.0.49'],
  )
})

test('a namespace of many pods is captured some at a time', async () => {
  const { enrollment, done, script } = recording()
  const { controller } = start(enrollment)
  await using _ = controller
  let [running, most] = [0, 0]
  script.enroll = async () => {
    running += 1
    most = Math.max(most, running)
    await new Promise((resolve) => setImmediate(resolve))
    running -= 1
  }
  const pods = Array.from({ length: 40 }, (_, index) => pod({ name: `p${index}`, uid: `u${index}` }))
  await controller.start(pods, [namespace(false)])
  await controller.idle()
  controller.namespaceChanged(namespace(true))
  await controller.idle()
  assert.equal(done.length, 41)
  assert.equal(most, 8)
})

test('closing ends what waits for its next attempt', async () => {
  const { enrollment, script } = recording()
  const { controller } = start(enrollment, () => 3_600_000)
  const failed = Promise.withResolvers<void>()
  script.enroll = async () => {
    failed.resolve()
    throw new Error('no proxy')
  }
  await controller.start([pod()], [namespace(true)])
  await failed.promise
  await controller[Symbol.asyncDispose]()
  await controller.idle()
})
