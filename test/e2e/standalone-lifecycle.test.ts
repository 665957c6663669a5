// The life of `lateen up` under bad conditions: whatever ends it, nothing of it is left, and nothing of others is touched.
import assert from 'node:assert/strict'
import { type ChildProcess, execFileSync, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import test, { after } from 'node:test'
import { lateenCommand, leftBehind, needsRoot, startUp, temporaryDirectory } from '../support/mesh-instance.ts'

const options = { skip: needsRoot, timeout: 60_000 }
const small = ['--no-mesh', '--no-sample', '--nodes', '1']
const directories: string[] = []

function newStateDir(): string {
  const directory = temporaryDirectory()
  directories.push(directory)
  return join(directory, 'state')
}

after(async () => {
  for (const child of children) child.kill('SIGKILL')
  for (const directory of directories) {
    await lateenCommand(['down', '--state-dir', join(directory, 'state')])
    rmSync(directory, { recursive: true, force: true })
  }
})

interface Up {
  readonly child: ChildProcess
  output(): string
  /** Resolves when the output has such a text. */
  says(pattern: RegExp): Promise<void>
  readonly ended: Promise<number | null>
}

const children: ChildProcess[] = []

function follow(child: ChildProcess): Up {
  children.push(child)
  let output = ''
  const waits = new Set<() => void>()
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (text: string) => {
      output += text
      for (const look of waits) look()
    })
  }
  const ended = once(child, 'close').then(([code]) => code as number | null)
  return {
    child,
    output: () => output,
    ended,
    async says(pattern) {
      const { promise, resolve, reject } = Promise.withResolvers<void>()
      const look = () => pattern.test(output) && resolve()
      waits.add(look)
      const over = ended.then(() => reject(new Error(`ended without ${pattern}: ${output}`)))
      look()
      await Promise.race([promise, over.then(() => promise)])
      waits.delete(look)
    },
  }
}

const running = /is running\. In another terminal/
const up = (stateDir: string, ...words: string[]) => follow(startUp([...small, '--state-dir', stateDir, ...words]))
const down = (stateDir: string) => lateenCommand(['down', '--state-dir', stateDir])
const onHost = (stateDir: string) => leftBehind(stateDir).filter((what) => what !== stateDir)

/** What runs still writes into it: `rm` goes on with the rest when an entry appears or vanishes meanwhile, rmSync ends there. */
function deleteByHand(stateDir: string): void {
  const { stderr } = spawnSync('rm', ['-rf', stateDir], { encoding: 'utf8' })
  assert.equal(existsSync(join(stateDir, 'up.json')), false, stderr)
}

/** Its `up` is killed, and its state directory deleted. */
async function leftRunning(): Promise<string> {
  const stateDir = newStateDir()
  const { child, says, ended } = up(stateDir)
  await says(running)
  child.kill('SIGKILL')
  await ended
  deleteByHand(stateDir)
  return stateDir
}

for (const [when, pattern] of [
  ['while it makes the network', /^/],
  ['while its API server starts', /✓ network/],
  ['while its nodes start', /✓ controllers/],
  ['while it runs', running],
] as const) {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    if (signal !== 'SIGINT' && pattern !== running) continue
    test(`${signal} ${when}, twice, ends it and leaves only its state`, options, async () => {
      const stateDir = newStateDir()
      const { child, says, ended } = up(stateDir)
      await says(pattern)
      if (pattern.source === '^') while (!existsSync(join(stateDir, 'up.json'))) await new Promise(setImmediate)
      child.kill(signal)
      child.kill(signal)
      assert.equal(await ended, pattern === running ? 0 : 130)
      assert.deepEqual(onHost(stateDir), [])
    })
  }
}

const older = ['/usr/bin/node', '/usr/local/bin/node'].find(
  (path) => existsSync(path) && !/^v(2[4-9]|[3-9]\d)/.test(execFileSync(path, ['--version'], { encoding: 'utf8' })),
)

test('started by an older Node, it hears the signals sent to that', {
  ...options,
  skip: options.skip || (older === undefined && 'no older Node here'),
}, async () => {
  const stateDir = newStateDir()
  const { child, says, ended } = follow(startUp([...small, '--state-dir', stateDir], older))
  await says(running)
  child.kill('SIGTERM')
  assert.equal(await ended, 0)
  assert.deepEqual(onHost(stateDir), [])
})

test('its terminal goes away: it ends in order', options, async () => {
  const stateDir = newStateDir()
  const { child, says, ended } = up(stateDir)
  await says(running)
  child.stdout?.destroy()
  child.stderr?.destroy()
  child.kill('SIGHUP')
  const [code] = child.exitCode === null ? await once(child, 'exit') : [child.exitCode]
  void ended
  assert.equal(code, 0)
  assert.deepEqual(onHost(stateDir), [])
})

for (const [when, pattern] of [
  ['while its nodes start', /✓ controllers/],
  ['while it runs', running],
] as const) {
  test(`killed ${when}: another up takes over; down cleans up`, options, async () => {
    const stateDir = newStateDir()
    const first = up(stateDir)
    await first.says(pattern)
    first.child.kill('SIGKILL')
    await first.ended
    const second = up(stateDir)
    await second.says(running)
    second.child.kill('SIGKILL')
    await second.ended
    assert.notDeepEqual(onHost(stateDir), [])
    assert.equal((await down(stateDir)).code, 0)
    assert.deepEqual(leftBehind(stateDir), [])
  })
}

test('killed while it stops: down cleans up', options, async () => {
  const stateDir = newStateDir()
  const { child, says, ended } = up(stateDir)
  await says(running)
  child.kill('SIGTERM')
  const record = join(stateDir, 'progress.json')
  while (!readFileSync(record, 'utf8').includes('stopping')) await new Promise(setImmediate)
  child.kill('SIGKILL')
  await ended
  assert.equal((await down(stateDir)).code, 0)
  assert.deepEqual(leftBehind(stateDir), [])
})

test('its state directory is deleted: it ends, says why, and leaves nothing', options, async () => {
  const stateDir = newStateDir()
  const { says, ended, output } = up(stateDir)
  await says(running)
  deleteByHand(stateDir)
  assert.equal(await ended, 1)
  assert.match(output(), /was removed while the mesh ran/)
  assert.deepEqual(leftBehind(stateDir), [])
})

test('killed, and its state directory deleted: down finds what it ran', options, async () => {
  const stateDir = await leftRunning()
  const { code, output } = await down(stateDir)
  assert.equal(code, 0, output)
  assert.deepEqual(leftBehind(stateDir), [])
})

test('two at once on one state directory: one runs, the other says so and changes nothing', options, async () => {
  const stateDir = newStateDir()
  const both = [up(stateDir), up(stateDir)]
  const loser = await Promise.race(both.map(({ ended }, index) => ended.then(() => index)))
  const winner = both[1 - loser]
  assert.match(both[loser]?.output() ?? '', /already running/)
  await winner?.says(running)
  winner?.child.kill('SIGTERM')
  assert.equal(await winner?.ended, 0)
  assert.deepEqual(onHost(stateDir), [])
})

test('two instances, the usual port in use: the end of one leaves the other alone', options, async () => {
  const busy = createServer().listen(6443, '127.0.0.1')
  busy.on('error', () => undefined) // somebody else has it: as good
  const [one, other] = [newStateDir(), newStateDir()]
  const first = up(one)
  const second = up(other)
  await Promise.all([first.says(running), second.says(running)])
  const plan = (stateDir: string) => JSON.parse(readFileSync(join(stateDir, 'network.json'), 'utf8'))
  assert.notEqual(plan(one).clusterCidr, plan(other).clusterCidr)
  assert.equal((await down(one)).code, 0)
  assert.equal(await first.ended, 0)
  assert.deepEqual(leftBehind(one), [])
  assert.equal((await lateenCommand(['status', '--state-dir', other])).code, 0)
  second.child.kill('SIGINT')
  await second.ended
  busy.close()
})

test('a full disk: it says so, ends, and can be removed', options, async () => {
  const stateDir = newStateDir()
  const mount = join(stateDir, '..')
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=400k', 'full', mount])
  try {
    const { ended, output } = up(stateDir)
    assert.equal(await ended, 1)
    assert.match(output(), /no space left|ENOSPC|disk is full/i)
    assert.equal((await down(stateDir)).code, 0)
    assert.deepEqual(leftBehind(stateDir), [])
  } finally {
    execFileSync('umount', ['-l', mount])
  }
})

test('up: not in a directory whose files down would remove', options, async () => {
  const directory = temporaryDirectory()
  directories.push(directory)
  mkdirSync(join(directory, 'bin'))
  for (const words of [[], ['--detach']]) {
    const { code, output } = await lateenCommand(['up', ...small, '--state-dir', directory, ...words])
    assert.equal(code, 1)
    assert.match(output, /^\S+ holds bin, which "lateen down" would take for a mesh's and remove: give .*\n$/)
  }
  assert.deepEqual(readdirSync(directory), ['bin'])
})

test('neither up nor down takes a project with the names of a mesh’s files', options, async () => {
  const directory = temporaryDirectory()
  directories.push(directory)
  const stateDir = join(directory, 'state')
  for (const name of ['bin', 'logs', 'nodes', 'pki']) mkdirSync(join(stateDir, name), { recursive: true })
  writeFileSync(join(stateDir, 'logs', 'up.log'), 'docker compose up')
  writeFileSync(join(stateDir, 'port.json'), '8080')
  const before = readdirSync(stateDir, { recursive: true }).sort()
  for (const words of [[], ['--detach']]) {
    const { code, output } = await lateenCommand(['up', ...small, '--state-dir', stateDir, ...words])
    assert.deepEqual([code, /would take for a mesh's and remove/.test(output)], [1, true], output)
  }
  const { code, output } = await down(stateDir)
  assert.deepEqual([code, /is not the state directory of a mesh\n$/.test(output)], [1, true], output)
  assert.deepEqual(readdirSync(stateDir, { recursive: true }).sort(), before)
})

test('what it left running is not ended in a directory that holds files of others since', options, async () => {
  const stateDir = await leftRunning()
  mkdirSync(join(stateDir, 'bin'), { recursive: true })
  const precious = join(stateDir, 'package.json')
  writeFileSync(precious, '{}')
  const refused = await down(stateDir)
  assert.deepEqual([refused.code, /move what it holds elsewhere/.test(refused.output)], [1, true], refused.output)
  assert.deepEqual([existsSync(precious), existsSync(join(stateDir, 'bin'))], [true, true])
  rmSync(precious)
  assert.equal((await down(stateDir)).code, 0)
  assert.deepEqual(leftBehind(stateDir), [])
})

test('manifests from standard input reach the background process', options, async () => {
  const stateDir = newStateDir()
  const manifest = 'apiVersion: v1\nkind: ConfigMap\nmetadata: { name: from-input }\n'
  const started = await lateenCommand(['up', ...small, '--state-dir', stateDir, '--detach', '-f', '-'], manifest)
  assert.equal(started.code, 0, started.output)
  const { output } = await lateenCommand(['get', 'cm', 'from-input', '-o', 'name', '--state-dir', stateDir])
  assert.equal(output, 'configmap/from-input\n')
  assert.equal((await down(stateDir)).code, 0)
})

test('down: not of a directory of others, nor of nothing', options, async () => {
  const directory = temporaryDirectory()
  directories.push(directory)
  writeFileSync(join(directory, 'precious'), '')
  const refused = await down(directory)
  assert.deepEqual([refused.code, existsSync(join(directory, 'precious'))], [1, true])
  const nothing = await down(join(directory, 'absent'))
  assert.deepEqual([nothing.code, nothing.output.includes('There is no mesh')], [0, true])
})
