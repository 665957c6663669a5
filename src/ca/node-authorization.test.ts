import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createNodeAuthorizer, parseTrustedAccounts } from './node-authorization.ts'
import { createPodIndex, type PodView, podViewOf } from './pod-index.ts'

const proxy: PodView = {
  name: 'z',
  namespace: 'istio-system',
  uid: 'u',
  serviceAccount: 'ztunnel',
  node: 'n',
  phase: 'Running',
}
const web: PodView = { name: 'w', namespace: 'shop', uid: 'v', serviceAccount: 'web', node: 'n', phase: 'Running' }
const caller = { namespace: 'istio-system', serviceAccount: 'ztunnel', podName: 'z', podUid: 'u' }
const requested = 'spiffe://td/ns/shop/sa/web'

function authorizer(pods: readonly PodView[]) {
  const trustedAccounts = new Set(['istio-system/ztunnel'])
  return createNodeAuthorizer({ trustedAccounts, trustDomains: () => ['td', 'alias'], pods: createPodIndex(pods) })
}

test('a node proxy may have what runs on its node', () => {
  authorizer([proxy, web])({ caller, requested })
  authorizer([proxy, web])({ caller, requested: 'spiffe://alias/ns/shop/sa/web' })
})

const refusals: readonly (readonly [string, readonly PodView[], object, RegExp])[] = [
  ['another account', [proxy, web], { caller: { ...caller, serviceAccount: 'web' } }, /not allowed to impersonate/],
  ['no SPIFFE identity', [proxy, web], { requested: 'web' }, /failed to validate impersonated identity/],
  ['an identity with empty parts', [proxy, web], { requested: 'spiffe://td/ns//sa/web' }, /failed to validate/],
  ['a foreign trust domain', [proxy, web], { requested: 'spiffe://evil/ns/shop/sa/web' }, /trust domain evil/],
  ['a token without a pod', [proxy, web], { caller: { ...caller, podName: undefined } }, /not bound to a pod/],
  ['a token without a pod uid', [proxy, web], { caller: { ...caller, podUid: undefined } }, /not bound to a pod/],
  [
    'a token with an empty pod uid',
    [{ ...proxy, uid: '' }, web],
    { caller: { ...caller, podUid: '' } },
    /not bound to a pod/,
  ],
  ['an unknown pod', [web], {}, /pod istio-system\/z not found/],
  ['a pod that was replaced', [{ ...proxy, uid: 'other' }, web], {}, /UID does not match/],
  ['a pod of another account', [{ ...proxy, serviceAccount: 'x' }, web], {}, /ServiceAccount does not match/],
  [
    'a caller that is not scheduled',
    [
      { ...proxy, node: '' },
      { ...web, node: '' },
    ],
    {},
    /not scheduled/,
  ],
  ['a caller that has ended', [{ ...proxy, phase: 'Failed' }, web], {}, /pod istio-system\/z has ended/],
  ['an identity in other letters', [proxy, web], { requested: 'spiffe://TD/ns/shop/sa/web' }, /trust domain TD/],
  ['an identity with a query', [proxy, web], { requested: `${requested}?x` }, /failed to validate/],
  ['an identity in percents', [proxy, web], { requested: 'spiffe://td/ns/shop/sa/%77eb' }, /failed to validate/],
  ['two identities', [proxy, web], { requested: `${requested},${requested}` }, /failed to validate/],
  ['a workload on another node', [proxy, { ...web, node: 'm' }], {}, /no instances of shop\/web found on node n/],
  ['a workload that has failed', [proxy, { ...web, phase: 'Failed' }], {}, /no instances/],
  ['a workload that has ended', [proxy, { ...web, phase: 'Succeeded' }], {}, /no instances/],
]
for (const [name, pods, changes, message] of refusals) {
  test(`${name} is refused`, () => {
    const request = { caller, requested, ...changes }
    assert.throws(() => authorizer(pods)(request), { code: 'IMPERSONATION_REFUSED', message })
  })
}

test('the index follows pods that move and go', () => {
  const index = createPodIndex([proxy, web])
  index.set({ ...web, node: 'm' })
  assert.deepEqual([...index.on('n', 'shop', 'web')], [])
  assert.equal([...index.on('m', 'shop', 'web')].length, 1)
  index.delete('shop', 'w')
  assert.deepEqual([...index.on('m', 'shop', 'web')], [])
  assert.equal(index.get('shop', 'w'), undefined)
})

test('a Pod of the API as the index takes it', () => {
  const pod = {
    metadata: { name: 'w', namespace: 'shop', uid: 'v' },
    spec: { serviceAccountName: 'web', nodeName: 'n' },
    status: { phase: 'Running' },
  }
  assert.deepEqual(podViewOf(pod), web)
  assert.deepEqual(podViewOf({ metadata: { name: 'w' } }), {
    name: 'w',
    namespace: '',
    uid: '',
    serviceAccount: '',
    node: '',
    phase: '',
  })
})

test('malformed accounts are left out and told of', () => {
  const warnings: string[] = []
  const accounts = parseTrustedAccounts('a/b, c/d,e,f/g/h,/x,,', (message) => void warnings.push(message))
  assert.deepEqual([...accounts], ['a/b', 'c/d'])
  assert.equal(warnings.length, 3)
})
