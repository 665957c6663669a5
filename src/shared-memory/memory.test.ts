import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { test } from 'node:test'
import { createMemory, growTo } from './memory.ts'

test('a limit beyond any address space reserves less', () => {
  const memory = createMemory(2 ** 52, 8192)
  assert.equal(memory.bytes.byteLength, 8192)
  assert.ok(memory.buffer.maxByteLength <= 2 ** 33, 'each place is a positive number of 32 bits')
  growTo(memory, 1024 * 1024)
  assert.equal(memory.words.length, 256 * 1024)
  assert.throws(() => growTo(memory, memory.buffer.maxByteLength + 4096), { code: 'OUT_OF_MEMORY' })
})

test('where address space is limited there is still some memory', () => {
  const script = `
    import { createSharedTables } from ${JSON.stringify(import.meta.resolve('./index.ts'))}
    const tables = createSharedTables({ tables: 1, readers: 0, limitBytes: 64 * 2 ** 30 })
    tables.commit((transaction) => transaction.put(0, 'key', new Uint8Array(10_000_000)))
    console.log(tables.usage().limitBytes)`
  const command = 'ulimit -v 8000000; exec "$0" --input-type=module -e "$1"'
  const limit = Number(execFileSync('sh', ['-c', command, process.execPath, script], { encoding: 'utf8' }))
  assert.ok(limit >= 16e6 && limit < 8e9, `${limit}`)
})
