import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { test } from 'node:test'
import { packageVersion } from './version.ts'

const program = join(import.meta.dirname, '../../bin/lateen.js')
const run = (...args: readonly string[]) =>
  spawnSync(process.execPath, [program, ...args], { encoding: 'utf8', timeout: 30_000 })

test('--version prints the version', () => {
  for (const flag of ['--version', '-V']) {
    const { status, stdout } = run(flag)
    assert.deepEqual([status, stdout], [0, `${packageVersion()}\n`])
  }
})

test('an error in what was asked for is one line without a stack', () => {
  const mistakes = [
    {
      args: ['discovery', '--log_output_level', 'xds:loud'],
      line: /^--log_output_level: invalid output level 'loud', expected /,
    },
    { args: ['cni-agent', '--log-output-level', 'loud'], line: /^LOG_OUTPUT_LEVEL: invalid output level 'loud'/ },
    { args: ['cni-agent', 'loud'], line: /^unexpected argument "loud": expected --<setting> <value>$/ },
    { args: ['up', '--check', '--detach'], line: /^--check waits for its result .*: leave out --detach$/ },
    {
      args: ['down', '--state-dir', ''],
      line: /'--state-dir <dir>' argument '' is invalid\. expected a directory \("lateen down --help" shows what it takes\)$/,
    },
    { args: ['exec'], line: /^error: missing required argument 'pod' \("lateen exec --help" shows what it takes\)$/ },
    {
      args: ['manifest', 'rights', '--signer', 'x'],
      line: /expected DOMAIN\/NAME, such as \S+ \("lateen manifest rights --help" shows what it takes\)$/,
    },
    { args: ['manifest', 'rights', '-i', 'A'], line: /expected the name of a namespace/ },
    { args: ['apply', '-f', '/dev/null'], line: /^\/dev\/null: holds no object$/ },
    { args: ['get', 'pods', '--kubeconfig', '/nowhere/config'], line: /^\/nowhere\/config: there is no such file$/ },
  ]
  for (const { args, line } of mistakes) {
    const { status, stderr } = run(...args)
    assert.equal(status, 1)
    assert.match(stderr.trimEnd(), line)
    assert.equal(stderr.trimEnd().split('\n').length, 1)
  }
})

test('help of a command that does not exist says so', () => {
  const { status, stdout, stderr } = run('help', 'nosuch')
  assert.deepEqual([status, stdout], [1, ''])
  assert.match(stderr, /^error: unknown command 'nosuch'\n\("lateen help" lists the commands\)\n$/)
})
