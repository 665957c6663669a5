import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createRefusalLog } from './refusal-log.ts'

test('of many refusals in a second some are written, and the number of the others with the next', () => {
  const lines: unknown[] = []
  let time = 0
  const refused = createRefusalLog({ warn: (_message, fields) => lines.push(fields) }, () => time)
  for (let at = 0; at < 100; at += 1) refused('refused', { peer: `${at}` })
  assert.equal(lines.length, 20)
  time = 1_000
  refused('refused', { peer: 'a' })
  refused('refused', { peer: 'b' })
  assert.deepEqual(lines.slice(20), [{ peer: 'a', unwritten: 80 }, { peer: 'b' }])
})
