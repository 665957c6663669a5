import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { raiseDescriptorLimit } from './limits.ts'

/** Soft and hard limit, as the kernel tells them. */
function limits(): readonly [soft: bigint, hard: bigint] {
  const [, soft, hard] = /^Max open files\s+(\d+)\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? []
  assert.ok(soft !== undefined && hard !== undefined)
  return [BigInt(soft), BigInt(hard)]
}

test('the limit of open descriptors is raised as far as it may be, and both are told', {
  skip: process.platform !== 'linux',
}, () => {
  const [, hard] = limits()
  // Node.js raises it when it starts: it is lowered again from outside.
  const lowered = hard / 2n
  execFileSync('prlimit', ['--pid', String(process.pid), `--nofile=${lowered}:`])
  assert.deepEqual(limits(), [lowered, hard])
  assert.deepEqual(raiseDescriptorLimit(), { before: lowered, after: hard })
  assert.deepEqual(limits(), [hard, hard])
  assert.deepEqual(raiseDescriptorLimit(), { before: hard, after: hard }, 'there is no more to raise')
})
