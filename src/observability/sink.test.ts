import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import fs, { closeSync, constants, openSync, readFileSync, readSync, rmSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { join } from 'node:path'
import { test } from 'node:test'
import { createFdSink } from './sink.ts'

const sinkModule = JSON.stringify(join(import.meta.dirname, 'sink.ts'))

test('lines are written in order', async () => {
  const path = `/tmp/lateen-sink-${process.pid}`
  const fd = openSync(path, 'w')
  const sink = createFdSink({ fd })
  for (let line = 0; line < 5000; line += 1) sink.write(`line ${line}\n`)
  await sink.flush()
  closeSync(fd)
  const lines = readFileSync(path, 'utf8').trimEnd().split('\n')
  execFileSync('rm', [path])
  assert.equal(lines.length, 5000)
  assert.equal(lines[4999], 'line 4999')
})

test('what is logged soon after a write is gathered, and a flush has it written', async () => {
  const path = `/tmp/lateen-sink-gathered-${process.pid}`
  const fd = openSync(path, 'w')
  try {
    const sink = createFdSink({ fd })
    sink.write('first\n')
    await sink.flush()
    sink.write('second\n')
    for (let turn = 0; turn < 3; turn += 1) await new Promise((resolve) => setImmediate(resolve))
    sink.write('third\n')
    assert.equal(readFileSync(path, 'utf8'), 'first\n')
    await sink.flush()
    assert.equal(readFileSync(path, 'utf8'), 'first\nsecond\nthird\n')
  } finally {
    closeSync(fd)
    rmSync(path)
  }
})

test('a full disk loses lines and counts them, nothing else', async () => {
  const fd = openSync('/dev/full', 'w')
  const sink = createFdSink({ fd })
  sink.write('a\n')
  sink.write('b\n')
  await sink.flush()
  closeSync(fd)
  assert.equal(sink.dropped, 2)
})

test('a reader that stops does not hold up the process; the queue is bounded and drops are told', async () => {
  const script = `
    import { createFdSink } from ${sinkModule}
    const sink = createFdSink({ fd: 1, maxLines: 100 })
    const write = () => { for (let i = 0; i < 1000; i++) sink.write('x'.repeat(1000) + '\\n') }
    const started = performance.now()
    write()
    setTimeout(() => {
      write()
      process.stderr.write(JSON.stringify({ elapsed: performance.now() - started, dropped: sink.dropped }) + '\\n')
    }, 50)
    process.stdin.once('data', async () => { sink.write('last\\n'); await sink.flush(); process.exit(0) })`
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], { stdio: ['pipe', 'pipe', 'pipe'] })
  const [report] = (await once(child.stderr, 'data')) as [Buffer]
  const { elapsed, dropped } = JSON.parse(report.toString()) as { elapsed: number; dropped: number }
  assert.ok(elapsed < 2000, `took ${elapsed} ms`)
  assert.ok(dropped >= 1700, `${dropped} dropped`)
  child.stdin.write('go\n')
  let text = ''
  child.stdout.on('data', (chunk: Buffer) => {
    text += chunk.toString()
  })
  await once(child, 'close')
  assert.match(text, /\d+ log lines dropped/)
})

test('a process whose reader has stopped ends, with its own status', { timeout: 20_000 }, async () => {
  const script = `
    import { createFdSink } from ${sinkModule}
    const sink = createFdSink({ fd: 1 })
    for (let i = 0; i < 1000; i++) sink.write('x'.repeat(1000) + '\\n')
    process.exitCode = 0
    await sink.flush()`
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], { stdio: ['ignore', 'pipe', 'inherit'] })
  assert.deepEqual(await once(child, 'exit'), [0, null])
  child.stdout.destroy()
})

test('the last words of a process come behind what its reader had no room for, whole', async (context) => {
  const path = `/tmp/lateen-sink-pipe-${process.pid}`
  execFileSync('mkfifo', [path])
  const fd = openSync(path, constants.O_RDWR | constants.O_NONBLOCK)
  const { promise: refused, resolve: onRefused } = Promise.withResolvers<void>()
  const write = fs.write as (fd: number, bytes: Buffer, done: (error: Error | null, written: number) => void) => void
  context.mock.method(fs, 'write', (...[to, bytes, done]: Parameters<typeof write>) =>
    write(to, bytes, (error, written) => {
      done(error, written)
      if (error !== null) onRefused()
    }),
  )
  syncBuiltinESMExports()
  try {
    const sink = createFdSink({ fd })
    // More than a pipe has room for, less than two of them.
    const lines = Array.from({ length: 1000 }, (_, index) => `line ${index} ${'x'.repeat(90)}\n`)
    for (const line of lines) sink.write(line)
    await refused
    let read = readAll(fd)
    sink.write('last words\n')
    sink.flushSync()
    read += readAll(fd)
    assert.equal(read, [...lines, 'last words\n'].join(''))
    await sink.flush()
    assert.equal(readAll(fd), '')
  } finally {
    context.mock.restoreAll()
    syncBuiltinESMExports()
    closeSync(fd)
    rmSync(path)
  }
})

/** What is in a pipe. */
function readAll(fd: number): string {
  let text = ''
  const piece = Buffer.alloc(64 * 1024)
  for (;;) {
    try {
      text += piece.toString('utf8', 0, readSync(fd, piece))
    } catch (error) {
      if (error instanceof Error && 'code' in error && error.code === 'EAGAIN') return text
      throw error
    }
  }
}

test('a reader that is gone does not end the process', async () => {
  const script = `
    import { createFdSink } from ${sinkModule}
    const sink = createFdSink({ fd: 1 })
    process.stdin.once('data', async () => {
      sink.write('x\\n'); await sink.flush()
      process.stderr.write('dropped ' + sink.dropped + '\\n'); process.exit(0)
    })`
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], { stdio: ['pipe', 'pipe', 'pipe'] })
  child.stdout.destroy()
  child.stdin.write('go\n')
  const [report] = (await once(child.stderr, 'data')) as [Buffer]
  assert.equal(report.toString(), 'dropped 1\n')
  await once(child, 'close')
})
