import assert from 'node:assert/strict'
import { test } from 'node:test'
import { renewalDelayMs, retryDelayMs } from './schedule.ts'

const hour = 3_600_000
const validity = (start: number, end: number) => ({ notBefore: new Date(start), notAfter: new Date(end) })

test('a certificate is renewed at half its life or a little before', () => {
  assert.equal(renewalDelayMs(validity(0, 24 * hour), 0, 0), 12 * hour)
  const early = renewalDelayMs(validity(0, 24 * hour), 0, 0.999)
  assert.ok(early > 10.7 * hour && early < 12 * hour)
})

test('past the half life it is renewed soon', () => {
  assert.equal(renewalDelayMs(validity(-120_000, 100_000), 0, 0), 30_000)
  assert.equal(renewalDelayMs(validity(-120_000, 500), 0, 0), 1_000)
})

test('a certificate that is not yet valid or has impossible dates is renewed soon', () => {
  assert.equal(renewalDelayMs(validity(hour, 2 * hour), 0, 0), 30_000)
  assert.equal(renewalDelayMs(validity(hour, hour), 2 * hour, 0), 30_000)
  assert.equal(renewalDelayMs(validity(Number.NaN, hour), 0, 0), 30_000)
})

test('retries double from 1 s to 150 s, give or take a fifth', () => {
  assert.deepEqual(
    [1, 2, 3, 8, 9, 100].map((failures) => retryDelayMs(failures, 0.5)),
    [1000, 2000, 4000, 128_000, 150_000, 150_000],
  )
  assert.equal(retryDelayMs(1, 0), 800)
  assert.ok(Math.abs(retryDelayMs(1, 1) - 1200) < 1e-6)
})
