// npm run conformance [suite…]: runs the suites (all that have data and an adapter when none is named).
import { listCases, runCase, suitesDir, suitesWithAdapter } from './run.ts'

const named = process.argv.slice(2)
const suites = named.length > 0 ? named : suitesWithAdapter()
const print = (line: string): void => void process.stdout.write(`${line}\n`)
const total = { passed: 0, failed: 0, pending: 0 }

if (suites.length === 0) print(`no conformance suites: ${suitesDir()} holds none with an adapter (set CONFORMANCE_DIR)`)
for (const suite of suites) {
  const count = { passed: 0, failed: 0, pending: 0 }
  try {
    for (const one of await listCases(suite)) {
      const result = await runCase(suite, one)
      count[result.outcome] += 1
      if (result.outcome === 'failed') print(`FAIL ${suite}/${result.name}\n${result.detail?.replace(/^/gm, '    ')}`)
      if (result.outcome === 'pending') print(`pending ${suite}/${result.name}: ${result.detail}`)
    }
  } catch (error) {
    count.failed += 1
    print(`FAIL ${suite}: ${error instanceof Error ? error.message : String(error)}`)
  }
  print(`${suite}: ${count.passed} passed, ${count.failed} failed, ${count.pending} pending`)
  total.passed += count.passed
  total.failed += count.failed
  total.pending += count.pending
}
if (total.pending > 0) print(`${total.pending} pending`)
print(`${total.passed} passed, ${total.failed} failed`)
process.exit(total.failed > 0 ? 1 : 0)
