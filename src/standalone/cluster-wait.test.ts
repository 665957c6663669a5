import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { type EmbeddedApi, startEmbeddedApi } from '../kube/apiserver/index.ts'
import { createKubeClient, type KubeClient } from '../kube/index.ts'
import { waitUntil } from './cluster-wait.ts'

const stateDir = mkdtempSync(join(tmpdir(), 'lateen-cluster-wait-'))
let api: EmbeddedApi
let client: KubeClient

before(async () => {
  api = await startEmbeddedApi({
    stateDir,
    listen: [{ host: '127.0.0.1', port: 0 }],
    serviceCidr: '10.96.0.0/16',
    onError: (error) => assert.fail(String(error)),
  })
  client = await createKubeClient({ kubeconfig: api.kubeconfig })
})
after(async () => {
  await client.close()
  await api[Symbol.asyncDispose]()
  rmSync(stateDir, { recursive: true })
})

const never = () => ['what never comes']
const options = { timeoutMs: 60_000, note: () => undefined }

test('a wait that begins after the signal ends at once', { timeout: 20_000 }, async () => {
  await assert.rejects(waitUntil(client, never, { ...options, signal: AbortSignal.abort() }), { name: 'AbortError' })
})

test('a wait ends when the signal comes while it reads the first lists', { timeout: 20_000 }, async () => {
  const stop = new AbortController()
  const waited = waitUntil(client, never, { ...options, signal: stop.signal })
  stop.abort()
  await assert.rejects(waited, { name: 'AbortError' })
})

test('a wait ends when what it waits for never comes', { timeout: 20_000 }, async () => {
  const waited = waitUntil(client, never, { ...options, timeoutMs: 50, signal: new AbortController().signal })
  await assert.rejects(waited, /not ready after 0.05 s: what never comes/)
})
