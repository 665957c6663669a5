// Each thread has a copy of what it loads: what one of them has no use for must not creep in by an import.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { test } from 'node:test'
import { promisify } from 'node:util'

/** The URL of every file that loading a module brings in. */
async function loadedBy(module: string): Promise<readonly string[]> {
  const script = `
    import { registerHooks } from 'node:module'
    registerHooks({ load(url, context, next) { console.log(url); return next(url, context) } })
    await import(${JSON.stringify(new URL(module, import.meta.url).href)})`
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', script])
  return stdout.split('\n').filter((url) => url.startsWith('file:'))
}

test('a worker loads nothing of the control plane, the admin pages or YAML', async () => {
  const loaded = await loadedBy('./run-worker.ts')
  assert.ok(loaded.some((url) => url.endsWith('dataplane/pod-proxy.ts')))
  const unwanted =
    /node_modules\/(?:@grpc|@bufbuild|@peculiar|yaml|jose|dns-packet)\/|src\/(?:proto|grpc|xds)\/|ca-client|config-dump|zds/
  assert.deepEqual(
    loaded.filter((url) => unwanted.test(url)),
    [],
  )
})

test('the main thread loads nothing that carries connections, and no YAML', async () => {
  const loaded = await loadedBy('../process.ts')
  assert.ok(loaded.some((url) => url.endsWith('workers/start.ts')))
  const unwanted = /src\/hbone\/|dataplane\/(?!free-ports)|ztunnel\/dns\/|node_modules\/yaml\//
  assert.deepEqual(
    loaded.filter((url) => unwanted.test(url)),
    [],
  )
})
