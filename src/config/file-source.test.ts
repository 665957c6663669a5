import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { type KubeObject, resources } from '../api/index.ts'
import { silentLogging } from '../observability/index.ts'
import { type FileSource, openFileSource } from './file-source.ts'

const entry = (name: string, host: string, namespace?: string): string =>
  `apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata:
  name: ${name}
${namespace === undefined ? '' : `  namespace: ${namespace}\n`}spec:
  hosts: [${host}]
`

describe('a directory of manifests', { timeout: 20_000 }, () => {
  let dir: string
  let source: FileSource
  let errors: string[]
  const open = (): FileSource =>
    openFileSource({
      dir,
      kinds: [resources.serviceEntries],
      pollMs: 100,
      log: {
        ...silentLogging().scope('test'),
        error: (_message, fields) => void errors.push(String(fields?.problem ?? fields?.reason)),
      },
    })
  const write = (file: string, text: string): void => {
    // In one step, as an editor does.
    writeFileSync(join(dir, `.${file}`), text)
    renameSync(join(dir, `.${file}`), join(dir, file))
  }
  const hosts = async (holds: (hosts: readonly string[]) => boolean): Promise<readonly string[]> => {
    await using informer = source.informer<KubeObject<{ hosts: string[] }>>(resources.serviceEntries)
    const now = () => informer.list().flatMap(({ spec }) => spec?.hosts ?? [])
    if (holds(now())) return now()
    return await new Promise((resolve) => {
      informer.subscribe(() => {
        if (holds(now())) resolve(now())
      })
    })
  }
  const reported = async (pattern: RegExp): Promise<void> => {
    const deadline = Date.now() + 4_000
    while (!errors.some((text) => pattern.test(text))) {
      assert.ok(Date.now() < deadline, `not reported; reported: ${errors.join('\n')}`)
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }

  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), 'lateen-files-'))
    errors = []
  })
  afterEach(async () => {
    await source[Symbol.asyncDispose]()
    rmSync(dir, { recursive: true })
  })

  test('is read with its folders, and again when something changes', async () => {
    mkdirSync(join(dir, 'deep'))
    write('a.yaml', `${entry('a', 'a.example')}---\n${entry('b', 'b.example', 'ns')}`)
    writeFileSync(
      join(dir, 'deep/c.json'),
      JSON.stringify({ apiVersion: 'v1', kind: 'Other', metadata: { name: 'x' } }),
    )
    source = open()
    assert.deepEqual(await hosts((all) => all.length === 2), ['a.example', 'b.example'])
    write('a.yaml', entry('a', 'changed.example'))
    assert.deepEqual(await hosts((all) => all.length === 1), ['changed.example'])
    writeFileSync(join(dir, 'deep/d.yaml'), entry('d', 'd.example'))
    await hosts((all) => all.includes('d.example'))
    rmSync(join(dir, 'a.yaml'))
    assert.deepEqual(await hosts((all) => all.length === 1), ['d.example'])
    assert.deepEqual(errors, [])
  })

  test('keeps the last good content of a file that cannot be read, and says where it is wrong', async () => {
    write('a.yaml', entry('a', 'a.example'))
    source = open()
    write('a.yaml', `${entry('a', 'new.example')}---\nkind: ServiceEntry\nmetadata: {}\n`)
    await reported(/a\.yaml:8: apiVersion: expected a text/)
    assert.deepEqual(await hosts(() => true), ['a.example'])
    write('a.yaml', entry('a', 'mended.example'))
    await hosts((all) => all[0] === 'mended.example')
    assert.deepEqual(source.problems, [])
  })

  test('knows where a field stands, and which of two objects of one name counts', async () => {
    write('a.yaml', entry('a', 'first.example'))
    write('b.yaml', entry('a', 'second.example'))
    source = open()
    await using informer = source.informer(resources.serviceEntries)
    const [object] = informer.list()
    assert.ok(object)
    assert.equal(source.whereIs(object, 'spec.hosts[0]'), `${join(dir, 'a.yaml')}:6`)
    assert.match(errors.join(), /b\.yaml:1: ServiceEntry default\/a stands in .*a\.yaml:1 too/)
  })

  test('stays in force when it is gone, and a missing one is an error at the start', async () => {
    write('a.yaml', entry('a', 'a.example'))
    source = open()
    renameSync(dir, `${dir}-away`)
    await reported(/ENOENT/)
    assert.deepEqual(await hosts(() => true), ['a.example'])
    assert.throws(open, /ENOENT/)
    renameSync(`${dir}-away`, dir)
  })
})
