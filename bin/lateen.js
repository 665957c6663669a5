#!/usr/bin/env node
// Starts the command line: from source in a checkout, from dist/ in a published package, and always on a new enough Node.
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const here = (path) => fileURLToPath(new URL(path, import.meta.url))
const own = here('../node_modules/node/bin/node')

if (Number(process.versions.node.split('.')[0]) >= 24) {
  await import(existsSync(here('../src/commands/main.ts')) ? '../src/commands/main.ts' : '../dist/commands/main.js')
} else if (existsSync(own)) {
  const { status, signal } = spawnSync(own, process.argv.slice(1), { stdio: 'inherit' })
  if (signal) process.kill(process.pid, signal)
  process.exitCode = status ?? 1
} else {
  process.stderr.write(`lateen needs Node.js 24 or newer; this is ${process.version}. In a checkout, run npm ci.\n`)
  process.exitCode = 1
}
