// Topic certificates: the manager in virtual time with a CA that answers after a second.
import assert from 'node:assert/strict'
import { certificateFromAnswer, createCertificateRequest } from '../../../src/ca/client/index.ts'
import {
  CertificateError,
  createCertificateManager,
  isPrefetched,
  type Priority,
  type WorkloadCertificate,
} from '../../../src/ztunnel/certificates/index.ts'
import { createVirtualClock } from '../../support/virtual-clock.ts'
import { issueChain } from './issue.ts'
import type { Data, TopicRunner } from './topic.ts'

/** Renewals come at most this much of the lifetime before the half life. */
const documentedSpread = 0.05
const lifetimeSeconds = 100

export const runCertificates: TopicRunner = async (one) => {
  switch (one.kind) {
    case 'ca-answer':
      return await runAnswer(one)
    case 'prefetch':
      for (const { workload, prefetch } of one.table) {
        assert.equal(isPrefetched({ nativeTunnel: false, ...workload }, 'n1'), prefetch)
      }
      return
    default:
      return await runSteps(one)
  }
}

async function runSteps(one: Data): Promise<void> {
  const clock = createVirtualClock(0)
  const requests: { identity: string; at: number }[] = []
  let isFailing = false
  const manager = createCertificateManager({
    clock,
    concurrency: one.concurrency,
    random: () => 0,
    requestCertificate: (identity) => {
      requests.push({ identity, at: clock.now() / 1000 })
      const serial = String(requests.length)
      return new Promise((resolve, reject) => {
        clock.setTimeout(() => {
          if (isFailing) reject(new CertificateError('CA_CALL', 'signing gRPC error (Unavailable): down'))
          else resolve(issue(identity, serial, clock.now()))
        }, 1000)
      })
    },
  })
  const fetches: { promise: Promise<WorkloadCertificate>; result: string; settledAt?: number }[] = []
  for (const step of one.steps) {
    await clock.advanceTo(step.at * 1000)
    if (step.ca !== undefined) isFailing = step.ca === 'failing'
    for (let times = step.fetch === undefined ? 0 : (step.times ?? 1); times > 0; times -= 1) {
      const promise = manager.get(step.fetch.identity, step.fetch.priority as Priority)
      const fetch: (typeof fetches)[number] = { promise, result: step.result ?? 'certificate' }
      fetches.push(fetch)
      promise.then(
        () => {
          fetch.settledAt = clock.now() / 1000
        },
        () => {},
      )
    }
  }
  const { expect } = one
  await clock.advanceBy(5000)
  if (expect.caRequests !== undefined)
    assert.deepEqual(
      requests.map(({ identity }) => identity),
      expect.caRequests,
    )
  if (expect.quietUntil !== undefined) {
    await clock.advanceTo((expect.quietUntil - documentedSpread * lifetimeSeconds) * 1000)
    assert.equal(requests.length, expect.caRequests.length)
  }
  if (expect.renewals !== undefined) {
    await clock.advanceTo(expect.renewals.before * 1000)
    const renewals = requests.slice(expect.caRequests.length).map(({ identity }) => identity)
    assert.deepEqual(renewals.slice(0, expect.renewals.order.length), expect.renewals.order)
  }
  const settled = await Promise.allSettled(fetches.map(({ promise }) => promise))
  const got = settled.map((outcome) => (outcome.status === 'fulfilled' ? outcome.value : undefined))
  for (const [index, { result }] of fetches.entries()) {
    if (result === 'error') assert.equal(got[index], undefined)
    else assert.ok(got[index])
    if (result === 'the first certificate') assert.equal(got[index], got[0])
  }
  if (expect.sameCertificate === true) assert.equal(new Set(got).size, 1)
  if (expect.allAvailableAt !== undefined) {
    for (const { settledAt } of fetches) assert.equal(settledAt, expect.allAvailableAt)
  }
  if (expect.caRequestsAtLeast !== undefined) assert.ok(requests.length >= expect.caRequestsAtLeast)
  if (expect.caRequestsAtMost !== undefined) assert.ok(requests.length <= expect.caRequestsAtMost, `${requests.length}`)
  manager.close()
}

function issue(identity: string, serial: string, nowMs: number): WorkloadCertificate {
  const notAfter = new Date(nowMs + lifetimeSeconds * 1000)
  return { privateKey: '', leaf: identity, intermediates: [], roots: [], notBefore: new Date(nowMs), notAfter, serial }
}

async function runAnswer(one: Data): Promise<void> {
  const { csrPem, privateKeyPem } = await createCertificateRequest(one.request)
  const known = await issueChain(one.request, csrPem)
  const textOf = (entry: string): string =>
    entry
      .split('+')
      .map((name) => known[name])
      .join('\n')
  const chain = one.answer.chain.map(textOf)
  const read = () => certificateFromAnswer({ identity: one.request, privateKeyPem, chain, checkIdentity: true })
  if (one.expect.error !== undefined) {
    assert.throws(read, (error: Error) => error.message === one.expect.error)
    return
  }
  const certificate = read()
  const presented = [certificate.leaf, ...certificate.intermediates].map((pem) => pem.trim())
  assert.deepEqual(
    presented,
    one.expect.presented.map((name: string) => known[name]?.trim()),
  )
  assert.deepEqual(
    certificate.roots.map((pem) => pem.trim()),
    one.expect.trusted.map((name: string) => known[name]?.trim()),
  )
}
