import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { status } from '@grpc/grpc-js'
import { type Retry, retryAfter, type StreamEnd } from './recycling.ts'

const limits = { leastRetryMs: 10, mostRetryMs: 15_000 }
const withStatus = (code: number, details = ''): StreamEnd => ({ kind: 'status', code, details })
const notConnected: StreamEnd = { kind: 'not-connected', error: new Error('refused') }

describe('after a stream ended', () => {
  const cases: readonly [string, StreamEnd, { answered: boolean; baseMs: number }, Retry][] = [
    [
      'a first failure waits 20 ms',
      notConnected,
      { answered: false, baseMs: 10 },
      { delayMs: 20, nextBaseMs: 20, level: 'warn' },
    ],
    ['the wait doubles', notConnected, { answered: false, baseMs: 20 }, { delayMs: 40, nextBaseMs: 40, level: 'warn' }],
    [
      'up to its limit',
      notConnected,
      { answered: false, baseMs: 12_000 },
      { delayMs: 15_000, nextBaseMs: 15_000, level: 'warn' },
    ],
    [
      'a recycled stream is opened again at once',
      withStatus(status.UNAVAILABLE, 'transport is closing'),
      { answered: true, baseMs: 10 },
      { delayMs: 10, nextBaseMs: 10, level: 'debug' },
    ],
    [
      'so is one that the server ended',
      { kind: 'closed' },
      { answered: true, baseMs: 10 },
      { delayMs: 0, nextBaseMs: 10, level: 'debug' },
    ],
    [
      'but not one that never answered',
      { kind: 'closed' },
      { answered: false, baseMs: 10 },
      { delayMs: 20, nextBaseMs: 20, level: 'warn' },
    ],
    [
      'a refusal waits',
      withStatus(status.UNAUTHENTICATED, 'authentication failure'),
      { answered: false, baseMs: 160 },
      { delayMs: 320, nextBaseMs: 320, level: 'warn' },
    ],
    [
      'unavailable for another reason waits',
      withStatus(status.UNAVAILABLE, 'server is not ready'),
      { answered: true, baseMs: 10 },
      { delayMs: 20, nextBaseMs: 20, level: 'warn' },
    ],
  ]
  for (const [name, end, stream, expected] of cases) {
    test(name, () => assert.deepEqual(retryAfter(end, stream, limits), expected))
  }
})
