// `lateen up --check`: the whole mesh with the sample, verified by itself, and nothing left behind.
import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
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

test('the sample holds what it promises, and nothing is left', { skip, timeout: 300_000 }, async (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'lateen-check-'))
  const stateDir = join(directory, 'state')
  const { instance, run: runDirectory } = instancePaths(stateDir)
  t.after(async () => {
    await run('down', '--state-dir', stateDir)
    rmSync(directory, { recursive: true, force: true })
  })
  const { code, output } = await run('up', '--check', '--state-dir', stateDir)
  assert.equal(code, 0, output)
  const results = output.match(/^(ok {2}|FAIL) {2}/gm) ?? []
  assert.equal(results.filter((result) => result.startsWith('ok')).length, 10, output)
  assert.equal(results.length, 10, output)
  for (const command of [
    ['netns', 'list'],
    ['-o', 'link'],
  ]) {
    assert.ok(
      !execFileSync('ip', command, { encoding: 'utf8' }).includes(instance),
      `ip ${command.join(' ')} still shows ${instance}`,
    )
  }
  assert.equal(existsSync(runDirectory), false, `${runDirectory} is still there`)
})
