import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { AuthorizationAttributes } from '../types.ts'
import { type PolicyRule, ruleAllows, uncovered } from './rules.ts'

const user = { name: 'u', groups: [] }
const ask = (verb: string, resource: string, more: object = {}): AuthorizationAttributes => {
  const [plural = '', subresource] = resource.split('/', 2)
  return {
    kind: 'resource',
    user,
    verb,
    group: '',
    version: 'v1',
    resource: plural,
    ...(subresource === undefined ? {} : { subresource }),
    ...more,
  }
}
const path = (verb: string, text: string): AuthorizationAttributes => ({ kind: 'path', user, verb, path: text })
const rule = (verbs: string, resources: string, more: Partial<PolicyRule> = {}): PolicyRule => ({
  verbs: verbs.split(' '),
  apiGroups: [''],
  resources: resources.split(' '),
  ...more,
})

const cases: readonly (readonly [string, PolicyRule, AuthorizationAttributes, boolean])[] = [
  ['verb and resource', rule('get', 'pods'), ask('get', 'pods'), true],
  ['another verb', rule('get', 'pods'), ask('list', 'pods'), false],
  ['another group', rule('get', 'pods'), ask('get', 'pods', { group: 'apps' }), false],
  ['all groups', rule('get', 'pods', { apiGroups: ['*'] }), ask('get', 'pods', { group: 'apps' }), true],
  ['a resource is not its subresource', rule('get', 'pods'), ask('get', 'pods/log'), false],
  ['a subresource', rule('get', 'pods/log'), ask('get', 'pods/log'), true],
  ['a subresource of any resource', rule('update', '*/scale'), ask('update', 'deployments/scale'), true],
  ['everything', rule('*', '*', { apiGroups: ['*'] }), ask('delete', 'pods/exec'), true],
  ['a name', rule('get', 'secrets', { resourceNames: ['a'] }), ask('get', 'secrets', { name: 'a' }), true],
  ['another name', rule('get', 'secrets', { resourceNames: ['a'] }), ask('get', 'secrets', { name: 'b' }), false],
  [
    'a list where names are restricted',
    rule('list', 'secrets', { resourceNames: ['a'] }),
    ask('list', 'secrets'),
    false,
  ],
  ['a path', { verbs: ['get'], nonResourceURLs: ['/healthz'] }, path('get', '/healthz'), true],
  ['a path below', { verbs: ['get'], nonResourceURLs: ['/api/*'] }, path('get', '/api/v1'), true],
  ['another path', { verbs: ['get'], nonResourceURLs: ['/healthz'] }, path('get', '/metrics'), false],
  ['resources grant no paths', rule('*', '*', { apiGroups: ['*'] }), path('get', '/metrics'), false],
]
for (const [name, granted, wanted, allowed] of cases) {
  test(`${name}: ${allowed ? 'allowed' : 'refused'}`, () => assert.equal(ruleAllows(granted, wanted), allowed))
}

test('what is granted covers parts of itself and nothing more', () => {
  const owned = [rule('get list', 'pods services'), rule('get', 'secrets', { resourceNames: ['a'] })]
  assert.deepEqual(uncovered(owned, [rule('get', 'pods'), rule('list', 'services')]), [])
  assert.deepEqual(uncovered(owned, [rule('get', 'secrets', { resourceNames: ['a'] })]), [])
  assert.equal(uncovered(owned, [rule('get', 'secrets')]).length, 1)
  assert.equal(uncovered(owned, [rule('get delete', 'pods')]).length, 1)
  assert.equal(uncovered(owned, [rule('*', 'pods')]).length, 1)
  assert.equal(uncovered(owned, [{ verbs: ['get'], nonResourceURLs: ['/x'] }]).length, 1)
  assert.deepEqual(uncovered([rule('*', '*', { apiGroups: ['*'] })], [rule('delete', 'pods/log')]), [])
})
