import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type LabelSelector, matchesLabelSelector } from './label-selector.ts'

const labels = { app: 'web', tier: 'front' }
const expression = (operator: string, key: string, ...values: string[]): LabelSelector => ({
  matchExpressions: [{ key, operator, values }],
})

const table: [name: string, selector: LabelSelector, met: boolean][] = [
  ['an empty selector', {}, true],
  ['equal labels', { matchLabels: { app: 'web' } }, true],
  ['another value', { matchLabels: { app: 'db' } }, false],
  ['In', expression('In', 'app', 'db', 'web'), true],
  ['In without the label', expression('In', 'zone', 'a'), false],
  ['NotIn without the label', expression('NotIn', 'zone', 'a'), true],
  ['NotIn with the value', expression('NotIn', 'app', 'web'), false],
  ['Exists', expression('Exists', 'tier'), true],
  ['DoesNotExist', expression('DoesNotExist', 'tier'), false],
  ['an unknown operator', expression('Gt', 'tier', '1'), false],
  [
    'NotIn with values written without a value',
    { matchExpressions: [{ key: 'app', operator: 'NotIn', values: null as never }] },
    true,
  ],
  ['all parts have to hold', { matchLabels: { app: 'web' }, ...expression('Exists', 'zone') }, false],
]

for (const [name, selector, met] of table) {
  test(`${name} is ${met ? '' : 'not '}met`, () => assert.equal(matchesLabelSelector(selector, labels), met))
}
