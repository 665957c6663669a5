// docs/commands.md names every command, and every option of those that people run.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { commands } from './registry.ts'

const text = readFileSync(join(import.meta.dirname, '../../docs/commands.md'), 'utf8')
/** Their settings have pages of their own. */
const processes = ['discovery', 'ztunnel', 'cni-agent']

for (const { name, hidden, load } of commands) {
  if (hidden === true) continue
  test(`the documentation names ${name} and its options`, async () => {
    assert.ok(text.includes(`\`lateen ${name}`), `docs/commands.md does not name ${name}`)
    if (processes.includes(name)) return
    const flags = (await load())
      .create()
      .options.map(({ short, long }) => [short, long].filter((flag) => flag !== undefined))
    for (const forms of flags) {
      assert.ok(
        forms.some((form) => new RegExp(`[\`\\s]${form}(?![\\w-])`).test(text)),
        `docs/commands.md does not name ${forms.join(', ')} of ${name}`,
      )
    }
  })
}
