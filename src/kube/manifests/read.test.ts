import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { fieldText, ManifestError, parseField, readManifests } from './read.ts'

const pod = (name: string): string => `apiVersion: v1\nkind: Pod\nmetadata:\n  name: ${name}\n`

function read(text: string) {
  return readManifests(['-'], () => text)
}

function problems(text: string): string[] {
  try {
    read(text)
  } catch (error) {
    assert.ok(error instanceof ManifestError)
    return error.message.split('\n')
  }
  return []
}

test('a folder without manifests and a document that would become very large are told', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'lateen-manifests-'))
  t.after(() => rmSync(folder, { recursive: true }))
  assert.throws(() => readManifests([folder], () => ''), /holds no .yaml, .yml or .json file/)
  const level = (name: string, of: string): string => `${name}: &${name} [${`*${of},`.repeat(9)}]\n`
  const bomb = `a: &a [x]\n${level('b', 'a')}${level('c', 'b')}${level('d', 'c')}${level('e', 'd')}`
  assert.match(problems(bomb)[0] ?? '', /^-:1: .*alias/i)
})

test('documents, lists and JSON are read in order', () => {
  const list = `apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Pod, metadata: {name: b}}\n- {apiVersion: v1, kind: Pod, metadata: {name: c}}\n`
  const json = '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"d"}}'
  const names = read([pod('a'), list, '# nothing\n', json].join('\n---\n')).map(({ object }) => object.metadata.name)
  assert.deepEqual(names, ['a', 'b', 'c', 'd'])
})

test('a field knows its line, a missing one that of the nearest above', () => {
  const [, manifest] = read(
    `${pod('a')}---\n${pod('b')}spec:\n  containers:\n  - name: x\n  - name: y\n    image: host\n`,
  )
  assert.equal(manifest?.lineOf(['spec', 'containers', 1, 'image']), 14)
  assert.equal(manifest?.lineOf(['spec', 'containers', 1, 'nope']), 13)
  assert.equal(manifest?.lineOf([]), 6)
})

for (const [what, text, expected] of [
  [
    'broken YAML',
    'apiVersion: v1\nkind: [Pod\n',
    ['-:3: Flow sequence in block collection must be sufficiently indented and end with a ]'],
  ],
  ['a key twice', `${pod('a')}kind: Job\n`, ['-:5: Map keys must be unique']],
  ['no object', '- 1\n', ['-:1: expected an object with apiVersion, kind and metadata']],
  [
    'all that is missing at once',
    'kind: Pod\nmetadata: {name: 1}\n',
    [
      '-:1: apiVersion: expected a text such as networking.istio.io/v1',
      '-:2: metadata.name: expected a text such as reviews',
    ],
  ],
  ['an object twice', `${pod('a')}---\n${pod('a')}`, ['-:6: Pod a stands in -:1 too']],
] as const) {
  test(`${what} is reported with its line`, () => assert.deepEqual(problems(text), expected))
}

test('what holds no object is told', () => {
  assert.deepEqual(problems(''), ['-: holds no object'])
  assert.deepEqual(problems('# nothing\n---\n'), ['-: holds no object'])
})

test('a folder gives its manifests by name; what does not exist is named', (t: TestContext) => {
  const dir = mkdtempSync(join(tmpdir(), 'lateen-manifests-'))
  t.after(() => rmSync(dir, { recursive: true }))
  mkdirSync(join(dir, 'sub'))
  writeFileSync(join(dir, '2.yml'), pod('second'))
  writeFileSync(join(dir, '1.yaml'), pod('first'))
  writeFileSync(join(dir, 'README.md'), 'not a manifest')
  const names = readManifests([dir], () => '').map(({ object }) => object.metadata.name)
  assert.deepEqual(names, ['first', 'second'])
  assert.throws(() => readManifests([join(dir, 'nope')], () => ''), { message: `${dir}/nope: no such file or folder` })
})

test('field paths are read and written', () => {
  for (const text of ['spec.rules[0].from', 'metadata.labels[a.b/c]', 'spec'])
    assert.equal(fieldText(parseField(text)), text)
  assert.deepEqual(parseField('.spec.ports[2]'), ['spec', 'ports', 2])
})
