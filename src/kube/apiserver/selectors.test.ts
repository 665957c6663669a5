import assert from 'node:assert/strict'
import { test } from 'node:test'
import { matchesLabels, parseFieldSelector, parseLabelSelector } from './selectors.ts'

const labels = { app: 'web', tier: 'front', weight: '5' }

for (const [selector, expected] of [
  ['', true],
  ['app=web', true],
  ['app==web,tier=front', true],
  ['app=web,tier=back', false],
  ['app!=web', false],
  ['missing!=x', true],
  ['app in (web, api)', true],
  ['app in (api)', false],
  ['app notin (api,db),tier', true],
  ['missing notin (x)', true],
  ['!missing', true],
  ['!app', false],
  ['missing', false],
  ['weight>4,weight<6', true],
  ['weight>5', false],
  ['app=', false],
] as const) {
  test(`labels ${expected ? 'match' : 'do not match'} "${selector}"`, () => {
    assert.equal(matchesLabels(parseLabelSelector(selector), labels), expected)
  })
}

for (const selector of ['app in web', '=x', 'a=b=c d', 'app>x', 'app in (a', 'a b']) {
  test(`the label selector "${selector}" is refused`, () => {
    assert.throws(() => parseLabelSelector(selector), { code: 400 })
  })
}

test('a field selector may escape what separates its terms', () => {
  assert.deepEqual(parseFieldSelector('metadata.name=a\\,b,status.phase!=Running,spec.x=='), [
    { path: 'metadata.name', value: 'a,b', equal: true },
    { path: 'status.phase', value: 'Running', equal: false },
    { path: 'spec.x', value: '', equal: true },
  ])
  assert.throws(() => parseFieldSelector('metadata.name'), { code: 400 })
})
