// `lateen up --check`: the whole mesh with the sample, verified by itself, and nothing left behind.
import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { instancePaths } from '../../src/standalone/index.ts'

const lateen = join(import.meta.dirname, '../../bin/lateen.js')
const skip = process.getuid?.() === 0 ? false : 'needs root: makes network namespaces'

async function run(...words: string[]): Promise<{ code: number | null; output: string }> {
  const child = spawn(process.execPath, [lateen, ...words], { stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text
    })
  }
  const [code] = (await once(child, 'close')) as [number | null]
  return { code, output }
}

/** A state directory, and what nothing may be left of when the test ends. */
function stateDirectory(t: TestContext): { stateDir: string; assertNothingLeft: () => void } {
  const directory = mkdtempSync(join(tmpdir(), 'lateen-check-'))
  const stateDir = join(directory, 'state')
  const { instance, run: runDirectory } = instancePaths(stateDir)
  t.after(async () => {
    await run('down', '--state-dir', stateDir)
    rmSync(directory, { recursive: true, force: true })
  })
  return {
    stateDir,
    assertNothingLeft: () => {
      for (const command of [
        ['netns', 'list'],
        ['-o', 'link'],
      ]) {
        const shown = execFileSync('ip', command, { encoding: 'utf8' })
        assert.ok(!shown.includes(instance), `ip ${command.join(' ')} still shows ${instance}`)
      }
      assert.equal(existsSync(runDirectory), false, `${runDirectory} is still there`)
    },
  }
}

function assertAllHeld({ code, output }: { code: number | null; output: string }): void {
  assert.equal(code, 0, output)
  const results = output.match(/^(ok {2}|FAIL) {2}/gm) ?? []
  assert.deepEqual([...new Set(results)], ['ok    '], output)
  assert.equal(results.length, 10, output)
}

test('up --check: the sample holds what it promises, and nothing is left', { skip, timeout: 300_000 }, async (t) => {
  const { stateDir, assertNothingLeft } = stateDirectory(t)
  assertAllHeld(await run('up', '--check', '--state-dir', stateDir))
  assertNothingLeft()
})

test('up --check verifies a mesh that runs already, and leaves it running', { skip, timeout: 300_000 }, async (t) => {
  const { stateDir, assertNothingLeft } = stateDirectory(t)
  const up = await run('up', '--detach', '--state-dir', stateDir)
  assert.equal(up.code, 0, up.output)
  assertAllHeld(await run('up', '--check', '--state-dir', stateDir))
  const status = await run('status', '--state-dir', stateDir)
  assert.match(status.output, /: running\n/)
  const down = await run('down', '--state-dir', stateDir)
  assert.equal(down.code, 0, down.output)
  assertNothingLeft()
})
