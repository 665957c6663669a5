import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { PeerCertificate } from 'node:tls'
import { acceptServerNames } from './server-names.ts'

const certificateFor = (...names: string[]) =>
  ({ subject: {}, subjectaltname: names.map((name) => `DNS:${name}`).join(', ') }) as unknown as PeerCertificate

test('without an alternative only the name itself is accepted', () => {
  const check = acceptServerNames(undefined)
  assert.equal(check('istiod.istio-system.svc', certificateFor('istiod.istio-system.svc')), undefined)
  assert.match(
    check('istiod.istio-system.svc', certificateFor('other.svc'))?.message ?? '',
    /istiod\.istio-system\.svc/,
  )
})

test('an alternative is accepted besides the name, not instead of it', () => {
  const check = acceptServerNames('istiod.example')
  assert.equal(check('10.0.0.1', certificateFor('istiod.example')), undefined)
  assert.equal(check('istiod.istio-system.svc', certificateFor('istiod.istio-system.svc')), undefined)
  assert.match(check('istiod.istio-system.svc', certificateFor('evil.example'))?.message ?? '', /istiod\.istio-system/)
})
