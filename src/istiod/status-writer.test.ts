import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { nextConditions } from './status-writer.ts'

const accepted = {
  type: 'ZtunnelAccepted',
  status: 'True',
  reason: 'Accepted',
  message: 'fine',
  observedGeneration: 1,
} as const
const foreign = { type: 'Reconciled', status: 'True', lastTransitionTime: 'before' } as const
const now = () => 'now'

describe('the conditions to write', () => {
  test('are added to those of others', () => {
    assert.deepEqual(nextConditions('AuthorizationPolicy', [foreign], [accepted], now), [
      foreign,
      { ...accepted, lastTransitionTime: 'now' },
    ])
  })

  test('are none when what is there is right, whatever its time', () => {
    const present = [foreign, { ...accepted, lastTransitionTime: 'before' }]
    assert.equal(nextConditions('AuthorizationPolicy', present, [accepted], now), undefined)
    assert.equal(nextConditions('AuthorizationPolicy', [foreign], [], now), undefined)
  })

  test('keep the time while only the message changes, and move it with the status', () => {
    const present = [{ ...accepted, lastTransitionTime: 'before' }]
    const other = { ...accepted, message: 'other' }
    assert.equal(nextConditions('AuthorizationPolicy', present, [other], now)?.[0]?.lastTransitionTime, 'before')
    const refused = { ...accepted, status: 'False' } as const
    assert.equal(nextConditions('AuthorizationPolicy', present, [refused], now)?.[0]?.lastTransitionTime, 'now')
  })

  test('take away what is no longer wanted', () => {
    assert.deepEqual(nextConditions('AuthorizationPolicy', [foreign, accepted], [], now), [foreign])
  })
})
