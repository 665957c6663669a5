import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import { after, test } from 'node:test'
import { positionSince, timeAt } from './log-times.ts'
import { type LogOptions, writeLog } from './logs.ts'

const directory = mkdtempSync(join(tmpdir(), 'lateen-logs-'))
after(() => rmSync(directory, { recursive: true }))

const log = join(directory, '0.log')
writeFileSync(log, 'one\ntwo\nthree\nfour')
writeFileSync(`${log}.times`, '4 1000\n14 2000\n')

async function read(options: Partial<LogOptions>): Promise<string> {
  let text = ''
  const output = new Writable({
    write(chunk, _, done) {
      text += chunk
      done()
    },
  })
  const signal = new AbortController().signal
  await writeLog(log, output, { follow: false, signal, running: () => false, ...options })
  return text
}

const cases: readonly (readonly [name: string, options: Partial<LogOptions>, expected: RegExp])[] = [
  ['all', {}, /^one\ntwo\nthree\nfour$/],
  ['the last lines', { tailLines: 2 }, /^three\nfour$/],
  ['no line', { tailLines: 0 }, /^$/],
  ['what is newer', { sinceMs: 1500 }, /^two\nthree\nfour$/],
  ['the fewer of the last and the newer lines', { sinceMs: 1500, tailLines: 1 }, /^four$/],
  ['so many bytes', { limitBytes: 5 }, /^one\nt$/],
  [
    'times, of the moment where they are not noted yet',
    { timestamps: true },
    /^1970-01-01T00:00:01\.000Z one\n1970-01-01T00:00:02\.000Z two\n1970-01-01T00:00:02\.000Z three\n20\d\d-.*Z four$/,
  ],
]
for (const [name, options, expected] of cases) {
  test(`a log is read: ${name}`, async () => assert.match(await read(options), expected))
}

test('times of a log by offset, offsets by time', () => {
  const times = [
    { end: 10, ms: 100 },
    { end: 30, ms: 200 },
  ]
  assert.deepEqual(
    [0, 9, 10, 29, 30].map((offset) => timeAt(times, offset)),
    [100, 100, 200, 200, undefined],
  )
  assert.deepEqual(
    [50, 100, 101, 200, 201].map((ms) => positionSince(times, ms)),
    [0, 0, 10, 10, 30],
  )
})
