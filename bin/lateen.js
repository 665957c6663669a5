#!/usr/bin/env node
// Starts the command line: from source in a checkout, from dist/ in a published package, and always on a new enough Node.
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import module from 'node:module'
import { fileURLToPath } from 'node:url'

const here = (path) => fileURLToPath(new URL(path, import.meta.url))
// That of a checkout, or the one that a project has beside the package: npm install lateen node@24.
const beside = [here('../node_modules/node/bin/node'), here('../../node/bin/node')].find(existsSync)
const isCheckout = existsSync(here('../src/commands/main.ts'))

// A signal that the first process of a container has no handler for is lost, and a command has its own only once it is loaded.
if (process.pid === 1) {
  process.on('SIGTERM', () => {
    if (process.listenerCount('SIGTERM') === 1) process.exit(143)
  })
}

if (Number(process.versions.node.split('.')[0]) >= 24) {
  // Compiled code is kept beside the program: what starts next needs half the time, and a fifth less memory from source, as nothing has
  // to be turned into JavaScript again. Where the folder can't be written, nothing is kept.
  module.enableCompileCache(here('../.cache/compiled'))
  setTimeout(() => module.flushCompileCache(), 3_000).unref()
  await import(isCheckout ? '../src/commands/main.ts' : '../dist/commands/main.js')
} else if (beside !== undefined && process.execPath !== beside) {
  const child = spawn(beside, process.argv.slice(1), { stdio: 'inherit' })
  const passed = ['SIGINT', 'SIGTERM', 'SIGHUP']
  // What a terminal sends reaches both; what is sent to this process alone is for the one that does the work.
  for (const signal of passed) process.on(signal, () => child.kill(signal))
  child.once('exit', (status, signal) => {
    for (const one of passed) process.removeAllListeners(one)
    if (signal) process.kill(process.pid, signal)
    process.exitCode = status ?? 1
  })
} else {
  const remedy = isCheckout ? 'run npm ci, which brings one' : 'npm install node@24 brings one, just for this folder'
  process.stderr.write(`lateen needs Node.js 24 or newer; this is ${process.version}: ${remedy}\n`)
  process.exitCode = 1
}
