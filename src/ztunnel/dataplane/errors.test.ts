import assert from 'node:assert/strict'
import { test } from 'node:test'
import { HboneError, type HboneErrorCode } from '../../hbone/index.ts'
import { ConnectionError, describeBreak, describeFailure } from './errors.ts'

const systemError = (code: string, syscall: string) => Object.assign(new Error(`${syscall} ${code}`), { code, syscall })

test('a failure of a tunnel has the flag of its kind', () => {
  const tunnel = (code: HboneErrorCode, message: string, status?: number) =>
    describeFailure(new HboneError(code, message, status === undefined ? {} : { status }))
  assert.deepEqual(tunnel('TLS', 'bad'), { flag: 'TLS_FAILURE', error: 'tls error: bad' })
  assert.deepEqual(tunnel('PEER_IDENTITY', 'who?'), { flag: 'TLS_FAILURE', error: 'tls error: who?' })
  const revoked = 'connection closed: peer certificate revoked by CRL'
  assert.deepEqual(tunnel('PEER_IDENTITY', revoked), { flag: 'CERT_REVOKED', error: revoked })
  assert.deepEqual(tunnel('HTTP2', 'h2 failed: x'), { flag: 'H2_HANDSHAKE_FAILURE', error: 'h2 failed: x' })
  const refused = 'http status: 401 Unauthorized'
  assert.deepEqual(tunnel('STATUS', refused, 401), { flag: 'DENY', error: refused })
  assert.equal(tunnel('STATUS', 'http status: 503 Service Unavailable', 503).flag, 'CONNECT')
  for (const code of ['TIMEOUT', 'RETRY', 'DRAINING', 'ABORTED'] as const) {
    assert.deepEqual(tunnel(code, 'over'), { flag: 'CONNECT', error: 'over' })
  }
})

test('an error of the system is told as one', () => {
  assert.deepEqual(describeFailure(systemError('EMFILE', 'socket')), {
    flag: 'CONNECT',
    error: 'io error: socket EMFILE',
  })
  assert.deepEqual(describeFailure('odd'), { flag: 'CONNECT', error: 'odd' })
})

test('what breaks a connection under way is told with its direction and layer', () => {
  const timedOut = systemError('ETIMEDOUT', 'read')
  assert.equal(describeBreak(timedOut, 'first').error, 'send: io error: read ETIMEDOUT')
  assert.equal(describeBreak(timedOut, 'second').error, 'receive: io error: read ETIMEDOUT')
  const shutdown = describeBreak(systemError('EIO', 'shutdown'), 'second')
  assert.deepEqual(shutdown, { flag: 'CONNECT', error: 'while closing connection: io error: shutdown EIO' })
  const reset = new Error('Stream closed with error code 2')
  assert.equal(describeBreak(reset, 'second').error, 'receive: h2 failed: Stream closed with error code 2')
  const cut = new ConnectionError('DENY', 'connection closed due to policy change')
  assert.deepEqual(describeBreak(cut, undefined), { flag: 'DENY', error: 'connection closed due to policy change' })
})
