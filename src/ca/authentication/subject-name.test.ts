import assert from 'node:assert/strict'
import { test } from 'node:test'
import { commonNamesOf } from './subject-name.ts'

const subjects: readonly (readonly [string, readonly string[]])[] = [
  ['', []],
  ['CN=a', ['a']],
  ['O=x,CN=a', ['a']],
  ['O=x, cn = a ,C=US', ['a']],
  ['OU=x+CN=y,O=z', ['y']],
  ['2.5.4.3=a', ['a']],
  ['O=a\\,CN=evil', []],
  ['O=a\\+CN=evil', []],
  ['O=a\\\\,CN=b', ['b']],
  ['O="x, CN=evil",CN=good', ['good']],
  ['O=a/CN=evil', []],
  ['OCN=evil', []],
  ['CN=a\\,b', ['a,b']],
  ['CN=a\\2Cb', ['a,b']],
  ['CN=L\\C3\\BC', ['Lü']],
  ['CN="a, b"', ['a, b']],
  ['CN=', []],
  ['/C=US/O=x/CN=Test Client', ['Test Client']],
]
for (const [subject, names] of subjects) {
  test(`the common name of ${subject}`, () => assert.deepEqual(commonNamesOf(subject), names))
}

test('of several common names none is meant', () => {
  for (const subject of ['CN=a,CN=b', '/O=a/CN=evil/CN=good', 'CN=a+CN=b']) {
    assert.throws(() => commonNamesOf(subject), { code: 'UNAUTHENTICATED' }, subject)
  }
})
