// npm test: types, lint and layering first, then every test in one run of the runner, whose count ends the output.
import { spawnSync } from 'node:child_process'
import { globSync } from 'node:fs'
import { join } from 'node:path'

const root = join(import.meta.dirname, '..')

function run(command: string, args: readonly string[]): number {
  const { status, signal, error } = spawnSync(command, args, { cwd: root, stdio: 'inherit' })
  if (error !== undefined) throw error
  return signal === null ? (status ?? 1) : 1
}

const checked = run('npm', ['run', '--silent', 'check'])
if (checked !== 0) {
  process.stderr.write('types, lint or layering failed: the tests were not run\n')
  process.exit(checked)
}
const named = process.argv.slice(2)
const files = named.length > 0 ? named : globSync(['src/**/*.test.ts', 'test/**/*.test.ts'], { cwd: root }).sort()
// Long ones first, so that none of them is alone at the end.
const endToEnd = files.filter((file) => file.startsWith('test/e2e/'))
const others = files.filter((file) => !endToEnd.includes(file))
process.exit(run(process.execPath, ['--test', '--test-concurrency=3', '--test-timeout=600000', ...endToEnd, ...others]))
