import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { test } from 'node:test'

const program = join(import.meta.dirname, '../../bin/lateen.js')

test('a control plane says first which variables that are set have no effect', () => {
  const ports = ['--httpAddr', '127.0.0.1:0', '--monitoringAddr', '127.0.0.1:0', '--ctrlz_port', '0']
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [program, 'discovery', '--kubeconfig', '/nowhere/config', ...ports],
    { encoding: 'utf8', timeout: 30_000, env: { ...process.env, PILOT_PUSH_THROTTLE: '20' } },
  )
  assert.equal(status, 1)
  assert.match(stdout.split('\n')[0] ?? '', /\twarn\t.*a variable that is set has no effect here.*PILOT_PUSH_THROTTLE/)
  assert.match(stderr, /\/nowhere\/config: there is no such file/)
})
