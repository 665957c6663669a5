import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { test } from 'node:test'

const program = join(import.meta.dirname, '../../bin/lateen.js')
const run = (args: readonly string[], env: Readonly<Record<string, string>> = {}) =>
  spawnSync(process.execPath, [program, 'ztunnel', ...args], {
    encoding: 'utf8',
    timeout: 30_000,
    env: { PATH: process.env.PATH ?? '', ...env },
  })

test('version prints the build on one line', () => {
  const { status, stdout } = run(['version'], { ISTIO_META_ISTIO_VERSION: '1.27.0' })
  assert.equal(status, 0)
  assert.match(
    stdout,
    /^version\.BuildInfo\{Version:"[^"]+", GitRevision:"[^"]+", RustVersion:"node \d[^"]+", BuildProfile:"[^"]+", BuildStatus:"[^"]+", IstioVersion:"1\.27\.0", CryptoProvider:"openssl [^"]+"\}\n$/,
  )
})

test('help is printed when asked for, and for a command that is unknown, which is named', () => {
  const help = run(['help'])
  assert.deepEqual([help.status, help.stderr], [0, ''])
  assert.match(help.stdout, /^Usage: /)
  const unknown = run(['serve', 'more'])
  assert.deepEqual([unknown.status, unknown.stderr], [1, 'unknown command: serve\n'])
  assert.equal(unknown.stdout, help.stdout)
})

test('a setting that cannot be read ends the start and is named', () => {
  const { status, stderr } = run(['proxy', 'ztunnel'], { PROXY_MODE: 'both' })
  assert.equal(status, 1)
  assert.match(stderr, /PROXY_MODE must be one of dedicated, shared/)
})

/** Sends the process SIGTERM as soon as it has any handler for it. */
const hasty = `
  const { on } = process
  process.on = (name, ...more) => {
    on.call(process, name, ...more)
    if (name !== 'SIGTERM' || process.execArgv.length > 0) return process
    process.on = on
    process.kill(process.pid, 'SIGTERM')
    return process
  }`

test('the first process of a container that is ended while it loads ends', {
  skip: process.platform === 'linux' && process.getuid?.() === 0 ? false : 'a process namespace needs root',
}, () => {
  const preload = `--import=data:text/javascript,${encodeURIComponent(hasty)}`
  const command = ['--pid', '--fork', '--kill-child', process.execPath, program, 'ztunnel']
  const { status, stdout } = spawnSync('unshare', command, {
    encoding: 'utf8',
    timeout: 30_000,
    killSignal: 'SIGKILL',
    env: { PATH: process.env.PATH ?? '', NODE_OPTIONS: preload },
  })
  assert.deepEqual([status, stdout], [143, ''])
})
