import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createVirtualClock } from '../../../test/support/virtual-clock.ts'
import { CertificateError, type WorkloadCertificate } from '../../ca/client/index.ts'
import { createCertificateManager } from './manager.ts'

const second = 1000

/** A CA that answers after a second, with certificates valid for 100 s from its answer. */
function world(options: { concurrency?: number; random?: number } = {}) {
  const clock = createVirtualClock(1_000_000)
  const start = clock.now()
  const requests: { readonly identity: string; readonly at: number }[] = []
  const ca = { isFailing: false }
  const certificates = createCertificateManager({
    clock,
    concurrency: options.concurrency ?? 1,
    random: () => options.random ?? 0.5,
    requestCertificate(identity, signal) {
      requests.push({ identity, at: (clock.now() - start) / second })
      const serial = String(requests.length)
      return new Promise((resolve, reject) => {
        const timer = clock.setTimeout(() => {
          if (ca.isFailing) reject(new CertificateError('CA_CALL', 'signing gRPC error (Unavailable): down'))
          else resolve(certificateOf(identity, serial, clock.now()))
        }, second)
        signal.addEventListener('abort', () => {
          clock.clearTimeout(timer)
          reject(signal.reason)
        })
      })
    },
  })
  return {
    clock,
    certificates,
    requests,
    ca,
    at: (seconds: number) => clock.advanceTo(start + seconds * second),
    asked: () => requests.map(({ identity }) => identity),
  }
}

function certificateOf(identity: string, serial: string, nowMs: number): WorkloadCertificate {
  return {
    privateKey: '',
    leaf: identity,
    intermediates: [],
    roots: [],
    notBefore: new Date(nowMs),
    notAfter: new Date(nowMs + 100 * second),
    serial,
  }
}

test('the waiting connection goes first, then prefetches, then renewals', async () => {
  const { certificates, at, asked, requests } = world({ random: 0 })
  const fetches = [
    certificates.get('one', 'Background'),
    certificates.get('two', 'Background'),
    certificates.get('three', 'Warmup'),
    certificates.get('four', 'RealTime'),
  ]
  await at(5)
  await Promise.all(fetches)
  assert.deepEqual(asked(), ['one', 'four', 'three', 'two'])
  await at(50.9)
  assert.equal(requests.length, 4)
  await at(56)
  assert.deepEqual(asked().slice(4), ['one', 'four', 'three', 'two'])
  certificates.close()
})

test('asking again with a higher priority moves a waiting request up', async () => {
  const { certificates, at, asked } = world()
  certificates.prefetch('busy')
  certificates.prefetch('a')
  certificates.prefetch('b')
  const urgent = certificates.get('b', 'RealTime')
  certificates.prefetch('b')
  await at(10)
  assert.equal((await urgent).leaf, 'b')
  assert.deepEqual(asked(), ['busy', 'b', 'a'])
  certificates.close()
})

test('all who wait for an identity share one request and get one certificate', async () => {
  const { certificates, at, requests } = world({ concurrency: 8 })
  const fetches = Array.from({ length: 50 }, () => certificates.get('one', 'RealTime'))
  await at(2)
  const got = await Promise.all(fetches)
  assert.equal(new Set(got).size, 1)
  assert.equal(requests.length, 1)
  assert.equal(await certificates.get('one', 'RealTime'), got[0])
  assert.equal(certificates.current('one'), got[0])
  certificates.close()
})

test('at most so many requests are in flight', async () => {
  const { certificates, at, requests } = world({ concurrency: 8 })
  for (let n = 0; n < 20; n += 1) certificates.prefetch(`id-${n}`)
  await at(0.5)
  assert.equal(requests.length, 8)
  await at(1.5)
  assert.equal(requests.length, 16)
  certificates.close()
})

test('a certificate is kept while it is valid, however often its renewal fails', async () => {
  const { certificates, at, requests, ca } = world()
  const first = certificates.get('one', 'RealTime')
  await at(2)
  ca.isFailing = true
  await at(100)
  assert.ok(requests.length > 3)
  assert.equal(await certificates.get('one', 'RealTime'), await first)
  await at(110)
  assert.equal(certificates.current('one'), undefined)
  await assert.rejects(certificates.get('one', 'RealTime'), /Unavailable/)
  assert.equal(certificates.list()[0]?.state, 'Unavailable')
  ca.isFailing = false
  await at(300)
  assert.equal((await certificates.get('one', 'RealTime')).leaf, 'one')
  certificates.close()
})

test('while an identity is unavailable who asks is refused at once; a retry brings it back', async () => {
  const { certificates, at, ca, requests } = world()
  ca.isFailing = true
  const first = certificates.get('one', 'RealTime')
  const refused = assert.rejects(first, { code: 'CA_CALL', message: 'signing gRPC error (Unavailable): down' })
  await at(1)
  await refused
  await assert.rejects(certificates.get('one', 'RealTime'), { code: 'CA_CALL' })
  await at(1.5)
  ca.isFailing = false
  await at(4)
  assert.equal((await certificates.get('one', 'RealTime')).leaf, 'one')
  assert.deepEqual(
    requests.map(({ at: time }) => time),
    [0, 2],
  )
  certificates.close()
})

test('retries are spaced twice as far each time, up to 150 s', async () => {
  const { certificates, at, ca, requests } = world()
  ca.isFailing = true
  certificates.prefetch('one')
  await at(1000)
  const gaps = requests.slice(1).map(({ at: time }, index) => time - (requests[index]?.at ?? 0) - 1)
  assert.deepEqual(gaps.slice(0, 10), [1, 2, 4, 8, 16, 32, 64, 128, 150, 150])
  certificates.close()
})

test('a forgotten identity refuses its waiters, frees its place and can be asked for again', async () => {
  const { certificates, at, asked } = world()
  const refused = assert.rejects(certificates.get('one', 'RealTime'), {
    code: 'FORGOTTEN',
    message: 'the identity is no longer needed',
  })
  const other = certificates.get('two', 'Warmup')
  certificates.forget('one')
  await refused
  assert.deepEqual(asked(), ['one', 'two'])
  const again = certificates.get('one', 'RealTime')
  await at(5)
  assert.equal((await again).leaf, 'one')
  assert.equal((await other).leaf, 'two')
  certificates.close()
})

test('forgetting an identity with a certificate ends its renewal', async () => {
  const { certificates, at, requests, clock } = world()
  certificates.prefetch('one')
  await at(2)
  certificates.forget('one')
  assert.equal(clock.pending, 0)
  await at(500)
  assert.equal(requests.length, 1)
  assert.deepEqual(certificates.list(), [])
})

test('an answer that has expired already is a failure', async () => {
  const clock = createVirtualClock(1_000_000)
  const certificates = createCertificateManager({
    clock,
    requestCertificate: async (identity) => certificateOf(identity, '1', clock.now() - 200 * second),
  })
  await assert.rejects(certificates.get('one', 'RealTime'), { code: 'CA_ANSWER' })
  certificates.close()
})

test('a closed manager leaves no timer and refuses', async () => {
  const { certificates, clock, at } = world()
  certificates.prefetch('one')
  await at(2)
  const refused = assert.rejects(certificates.get('two', 'RealTime'), { code: 'CLOSED' })
  certificates.close()
  await refused
  assert.equal(clock.pending, 0)
  await assert.rejects(certificates.get('one', 'RealTime'), { code: 'CLOSED' })
})

test('the states are listed', async () => {
  const { certificates, at } = world()
  certificates.prefetch('b')
  certificates.prefetch('a')
  await at(1.5)
  assert.deepEqual(
    certificates.list().map(({ identity, state }) => [identity, state]),
    [
      ['a', 'Initializing'],
      ['b', 'Available'],
    ],
  )
  certificates.close()
})
