// Every conformance case as a test of its own.
import { test } from 'node:test'
import { listCases, suitesDir, suitesWithAdapter } from './run.ts'

const suites = suitesWithAdapter()
if (suites.length === 0) {
  test('conformance suites', { skip: `no suite in ${suitesDir()}: set CONFORMANCE_DIR to run them` }, () => undefined)
}
for (const suite of suites) {
  const cases = await listCases(suite)
  test(`conformance: ${suite}`, async (t) => {
    for (const one of cases) {
      await t.test(one.name, one.pending === undefined ? {} : { skip: `pending: ${one.pending}` }, async () =>
        one.run(),
      )
    }
  })
}
