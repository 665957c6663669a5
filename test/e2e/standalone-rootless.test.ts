// `lateen up` without root: the same, in namespaces in which the user is root; ended, nothing of it is left.
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { chown, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test, { after } from 'node:test'
import { instancePaths } from '../../src/standalone/index.ts'

const nobody = 65534
const drop = ['setpriv', `--reuid=${nobody}`, `--regid=${nobody}`, '--clear-groups', '--']
const lateen = join(import.meta.dirname, '../../bin/lateen.js')

function whyNot(): string | false {
  if (process.getuid?.() !== 0) return 'needs root, to become another user'
  const [file = '', ...args] = [...drop, 'unshare', '--user', '--map-root-user', '--net', '--mount', 'true']
  if (spawnSync(file, args).status !== 0) return 'this kernel gives users no namespaces'
  if (spawnSync(drop[0] ?? '', [...drop.slice(1), process.execPath, lateen, 'version']).status !== 0) {
    return 'the checkout cannot be read by other users'
  }
  return false
}

const options = { skip: whyNot(), timeout: 120_000 }
const directory = await mkdtemp(join(tmpdir(), 'h-rootless-'))
await chown(directory, nobody, nobody).catch(() => undefined)
const stateDir = join(directory, 'state')
after(async () => {
  // Whatever a failed test left running.
  if (existsSync(stateDir)) await asNobody('down')
  await rm(directory, { recursive: true, force: true })
})

async function asNobody(...words: string[]): Promise<{ code: number; output: string }> {
  const [file = '', ...args] = [...drop, process.execPath, lateen, ...words, '--state-dir', stateDir]
  const child = spawn(file, args, { stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => (output += text))
  const [code] = (await once(child, 'close')) as [number | null]
  return { code: code ?? 137, output }
}

test('a user without root runs pods with names and services, and ends them', options, async () => {
  const up = await asNobody('up', '--detach', '--no-mesh', '--no-sample', '--nodes', '2')
  assert.equal(up.code, 0, up.output)
  const status = await asNobody('status')
  assert.equal(status.code, 0, status.output)
  assert.match(status.output, /kube-system\/cluster-dns-\S+ +1\/1 +Running/)
  const down = await asNobody('down')
  assert.equal(down.code, 0, down.output)
  assert.ok(!existsSync(stateDir))
  const { instance } = instancePaths(stateDir)
  assert.deepEqual(
    readdirSync('/sys/class/net').filter((name) => name.includes(instance)),
    [],
  )
  const left = readdirSync('/proc').filter((pid) => {
    try {
      return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(stateDir)
    } catch {
      return false
    }
  })
  assert.deepEqual(left, [])
})
